package conv

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// FewOutputs is how many output channels count as few.
const FewOutputs = 4

// few are the kernels of a level for one type of image and weight.
type few struct {
	dtype  tensor.DType
	lanes  int  // elements in a vector
	pixels int  // output pixels of a call
	masks  bool // the last vector of a row may be partial

	// run[outs-1] computes out[pixel][outs] from rows rows of vectors vectors: see gen.
	run [FewOutputs]func(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)
}

// fewKernel returns the kernel for p, nil where the product does it.
func fewKernel(level isa.Level, p *Problem) *few {
	if p.O < 1 || p.O > FewOutputs || p.Packed != nil || p.pointwise() || p.C < 1 || p.X.DType != p.Weight.DType {
		return nil
	}
	for _, k := range fewKernels(level) {
		if k.dtype == p.X.DType && (k.masks || p.KW*p.C%k.lanes == 0) {
			return k
		}
	}
	return nil
}

// fewRun is one convolution in progress. Work is divided by lines of output pixels.
type fewRun struct {
	k        *few
	p        *Problem
	emit     gemm.Emit
	oh, ow   int
	sy, sx   int
	size     int       // bytes of an element
	taps     int       // elements of a row of a patch
	vectors  int       // that hold it
	mask     uint64    // of the last one
	words    []float32 // memory of weights
	weights  []byte    // (KH, vectors, O, lanes)
	rowBytes int       // of weights, per row of the kernel
	workers  []worker
	lines    func(worker, lo, hi int)
}

type worker struct {
	sums []float32 // a line of output, and what the last call of the kernel makes beyond it
	edge []float32 // memory of patches that reach over the image's sides, (KH, pixels)
}

var fewRuns = par.Kept[fewRun]{New: func() *fewRun {
	r := &fewRun{}
	r.lines = func(w, lo, hi int) { // bound once, so that a call allocates nothing
		for i := lo; i < hi; i++ {
			r.line(w, i/r.oh, i%r.oh)
		}
	}
	return r
}}

func runFew(pool *par.Pool, k *few, p *Problem, emit gemm.Emit) {
	r := fewRuns.Get()
	defer r.free()
	r.k, r.p, r.emit, r.size, r.sy, r.sx = k, p, emit, p.X.DType.Size(), max(p.StrideY, 1), max(p.StrideX, 1)
	r.oh, r.ow = p.OutSize()
	r.taps = p.KW * p.C
	r.vectors = (r.taps + k.lanes - 1) / k.lanes
	r.mask = 1<<(r.taps-(r.vectors-1)*k.lanes) - 1
	r.pack()
	for len(r.workers) < pool.Workers() {
		r.workers = append(r.workers, worker{})
	}
	for i := range r.workers {
		w := &r.workers[i]
		w.sums = grow(w.sums, (r.ow+k.pixels)*p.O)
		w.edge = grow(w.edge, (p.KH*r.edgeBytes()+3)/4)
	}
	pool.For(p.N*r.oh, 1, r.lines)
}

func (r *fewRun) free() {
	r.p, r.emit = nil, nil
	fewRuns.Put(r)
}

// grow returns a slice of n floats that hold anything, s itself when it is large enough.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// pack orders the weight (O, C, KH, KW) as the kernel reads it.
func (r *fewRun) pack() {
	p, lanes := r.p, r.k.lanes
	r.rowBytes = r.vectors * p.O * lanes * r.size
	r.words = grow(r.words, p.KH*r.rowBytes/4)
	r.weights = tensor.Bytes(r.words)
	clear(r.weights) // where the last vector of a row is partial
	for ky := range p.KH {
		for i := range r.taps {
			kx, c := i/p.C, i%p.C
			for o := range p.O {
				to := ky*r.rowBytes + ((i/lanes*p.O+o)*lanes+i%lanes)*r.size
				from := (((o*p.C+c)*p.KH+ky)*p.KW + kx) * r.size
				copy(r.weights[to:to+r.size], p.Weight.Data[from:])
			}
		}
	}
}

// line computes a line of output pixels.
func (r *fewRun) line(id, image, oy int) {
	p, k, w := r.p, r.k, &r.workers[id]
	edge := tensor.Bytes(w.edge)
	y0 := oy*r.sy - p.Pad.Top
	first, last := max(0, -y0), min(p.KH, p.H-y0) // rows of the kernel that meet the image
	if first >= last {
		clear(w.sums)
		r.emit(id, (image*r.oh+oy)*r.ow, 0, w.sums[:r.ow*p.O])
		return
	}
	lineBytes := p.W * p.C * r.size
	weights := unsafe.Pointer(&r.weights[first*r.rowBytes])
	top := ((image*p.H + y0 + first) * lineBytes)
	for ox := 0; ox < r.ow; ox += k.pixels {
		x0 := ox*r.sx - p.Pad.Left
		x, line := unsafe.Pointer(nil), lineBytes
		if x0 >= 0 && x0+(k.pixels-1)*r.sx+p.KW <= p.W {
			x = unsafe.Pointer(&p.X.Data[top+x0*p.C*r.size])
		} else {
			line = r.edgeBytes()
			for ky := range last - first {
				r.edge(edge[ky*line:][:line], p.X.Data[top+ky*lineBytes:][:lineBytes], x0)
			}
			x = unsafe.Pointer(&edge[0])
		}
		k.run[p.O-1](last-first, r.vectors, r.mask, x, uintptr(r.sx*p.C*r.size), uintptr(line), weights, &w.sums[ox*p.O])
	}
	r.emit(id, (image*r.oh+oy)*r.ow, 0, w.sums[:r.ow*p.O])
}

// edgeBytes is what the patches of one call span in a line of the image.
func (r *fewRun) edgeBytes() int { return ((r.k.pixels-1)*r.sx + r.p.KW) * r.p.C * r.size }

// edge copies the part of a line of the image from pixel x0 on, with zeros outside.
func (r *fewRun) edge(dst, line []byte, x0 int) {
	pixel := r.p.C * r.size
	at := x0 * pixel
	lo := min(max(-at, 0), len(dst))
	hi := max(min(len(dst), len(line)-at), lo)
	clear(dst[:lo])
	if hi > lo {
		copy(dst[lo:hi], line[at+lo:])
	}
	clear(dst[hi:])
}
