package pipeline

import "github.com/gesso-go/gesso/tensor"

// plane is a decoded tile as float32 numbers that are rounded to the autoencoder's dtype.
type plane struct {
	b, c, h, w int
	dtype      tensor.DType
	v          []float32
}

func newPlane(a *tensor.Array) *plane {
	return &plane{a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3], a.DType, append([]float32(nil), a.Float32s()...)}
}

func (p *plane) at(i, y, x int) *float32 { return &p.v[(i*p.h+y)*p.w+x] }

// mix is a·(1-t) + b·t with a rounding after each operation.
func (p *plane) mix(a, b float32, k, n int) float32 {
	t := float64(k) / float64(n)
	x := tensor.RoundTo(p.dtype, a*float32(1-t))
	y := tensor.RoundTo(p.dtype, b*float32(t))
	return tensor.RoundTo(p.dtype, x+y)
}

// blendDown blends p's first rows with the last rows of the tile above.
func (p *plane) blendDown(above *plane, extent int) {
	n := min(above.h, p.h, extent)
	for i := range p.b * p.c {
		for y := range n {
			for x := range p.w {
				*p.at(i, y, x) = p.mix(*above.at(i, above.h-n+y, x), *p.at(i, y, x), y, n)
			}
		}
	}
}

// blendRight blends p's first columns with the last columns of the tile to the left.
func (p *plane) blendRight(left *plane, extent int) {
	n := min(left.w, p.w, extent)
	for i := range p.b * p.c {
		for y := range p.h {
			for x := range n {
				*p.at(i, y, x) = p.mix(*left.at(i, y, left.w-n+x), *p.at(i, y, x), x, n)
			}
		}
	}
}

func (p *plane) crop(h, w int) *plane {
	h, w = min(h, p.h), min(w, p.w)
	q := &plane{p.b, p.c, h, w, p.dtype, make([]float32, p.b*p.c*h*w)}
	for i := range p.b * p.c {
		for y := range h {
			copy(q.v[(i*h+y)*w:][:w], p.v[(i*p.h+y)*p.w:])
		}
	}
	return q
}

func joinRight(ps []*plane) *plane {
	q := &plane{b: ps[0].b, c: ps[0].c, h: ps[0].h, dtype: ps[0].dtype}
	for _, p := range ps {
		q.w += p.w
	}
	q.v = make([]float32, 0, q.b*q.c*q.h*q.w)
	for i := range q.b * q.c {
		for y := range q.h {
			for _, p := range ps {
				q.v = append(q.v, p.v[(i*p.h+y)*p.w:][:p.w]...)
			}
		}
	}
	return q
}

func joinDown(ps []*plane) *plane {
	q := &plane{b: ps[0].b, c: ps[0].c, w: ps[0].w, dtype: ps[0].dtype}
	for _, p := range ps {
		q.h += p.h
	}
	q.v = make([]float32, 0, q.b*q.c*q.h*q.w)
	for i := range q.b * q.c {
		for _, p := range ps {
			q.v = append(q.v, p.v[i*p.h*p.w:][:p.h*p.w]...)
		}
	}
	return q
}

func (p *plane) array(d tensor.DType) (*tensor.Array, error) {
	return tensor.FromFloat32(p.v, p.b, p.c, p.h, p.w).Convert(d)
}
