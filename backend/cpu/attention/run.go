package attention

import (
	"math"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/tensor"
)

const (
	packKeys   = 64 // keys packed as one piece of work
	maxPanels  = 4  // panels that share a pass over K and V, so that these come from the second cache
	packBudget = 32 << 20
)

// keyBlock is how many keys' scores are held at once. It shows in the bits of bfloat16 results: probabilities are rounded
// relative to the largest score so far, and PyTorch takes 512 keys at once.
func keyBlock(d tensor.DType) int {
	if d == tensor.BF16 {
		return 512
	}
	return 128
}

// runner is one Run in progress.
type runner struct {
	k       *kernels
	f       *vec.Funcs
	p       *Problem
	l       layout
	scale   float32
	width   int // queries in a full panel
	keys    int // scores held at once: keyBlock
	panels  int // panels in a piece of work
	pieces  int // pieces per query head
	scratch *scratch
}

// scratch is memory kept between calls: packed K and V, and each worker's panels.
type scratch struct {
	packed  []float32
	workers [][]float32
}

var scratches par.Kept[scratch]

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		// On a cache line, for the kernels' sake.
		b := make([]float32, n+16)
		off := int(-uintptr(unsafe.Pointer(&b[0]))%64) / 4
		return b[off : off+n]
	}
	return s[:n]
}

func run(pool *par.Pool, k *kernels, level isa.Level, p *Problem) {
	r := &runner{k: k, f: vec.For(level), p: p, l: newLayout(k, p), scale: p.Scale, width: k.lanes * k.vectors, keys: keyBlock(p.DType)}
	if r.scale == 0 {
		r.scale = float32(1 / math.Sqrt(float64(p.D)))
	}
	// Fewer panels a piece when there would be too few pieces for the workers.
	total := p.B * p.H * ((p.Nq + r.width - 1) / r.width)
	r.panels = min(max(total/(4*pool.Workers()), 1), maxPanels)
	r.pieces = (p.Nq + r.width*r.panels - 1) / (r.width * r.panels)

	r.scratch = scratches.Get()
	defer scratches.Put(r.scratch)
	for len(r.scratch.workers) < pool.Workers() {
		r.scratch.workers = append(r.scratch.workers, nil)
	}
	for w := range pool.Workers() {
		r.scratch.workers[w] = grow(r.scratch.workers[w], r.workerWords())
	}

	// Key heads are packed and used in groups, of which two are held: enough to keep the workers busy, few enough to stay in
	// the last cache.
	group := p.H / p.Hkv
	perHead := r.l.kWords + r.l.vWords
	heads := p.B * p.Hkv
	some := (16*pool.Workers() + group*r.pieces - 1) / (group * r.pieces)
	some = max(min(some, heads, packBudget/8/max(perHead, 1)), 1)
	r.scratch.packed = grow(r.scratch.packed, min(2*some, heads)*perHead)
	blocks := (r.l.keys + packKeys - 1) / packKeys
	pack := func(worker, first, i int) { // block i of the heads from first on
		bh, j := first+i/blocks, i%blocks*packKeys
		k, v := r.packed(bh % (2 * some))
		end := min(j+packKeys, r.l.keys)
		r.fetch(r.k.fetch, &p.K, bh/p.Hkv, bh%p.Hkv, j, min(end, p.Nk))
		r.fetch(r.k.fetch, &p.V, bh/p.Hkv, bh%p.Hkv, j, min(end, p.Nk))
		r.packK(k, bh/p.Hkv, bh%p.Hkv, j, end)
		r.packV(v, r.scratch.workers[worker], bh/p.Hkv, bh%p.Hkv, j, end)
	}
	pool.For(min(some, heads)*blocks, 1, func(w, lo, hi int) {
		for i := lo; i < hi; i++ {
			pack(w, 0, i)
		}
	})
	// While a group is used the next one is packed, in small pieces that come last, so that the workers end together.
	for first := 0; first < heads; first += some {
		n := min(some, heads-first) * group * r.pieces
		next := first + some
		pool.For(n+max(0, min(some, heads-next))*blocks, 1, func(w, lo, hi int) {
			for i := lo; i < hi; i++ {
				if i >= n {
					pack(w, next, i-n)
					continue
				}
				bh := first + i/(group*r.pieces)
				head := bh%p.Hkv*group + i/r.pieces%group
				r.piece(w, bh%(2*some), bh/p.Hkv, head, i%r.pieces)
			}
		})
	}
}

// fetch calls with, unless it is nil, on rows [lo, hi) of v. Rows of one head lie apart, so no processor expects the next one.
func (r *runner) fetch(with func(p unsafe.Pointer, stride uintptr, rows, bytes int), v *View, batch, head, lo, hi int) {
	if with == nil || lo >= hi {
		return
	}
	size := r.p.DType.Size()
	with(unsafe.Pointer(&v.Data[(batch*v.Batch+lo*v.Token+head*v.Head)*size]), uintptr(v.Token*size), hi-lo, r.p.D*size)
}

// packed returns K and V of one packed key head.
func (r *runner) packed(slot int) (k, v []float32) {
	s := r.scratch.packed[slot*(r.l.kWords+r.l.vWords):]
	return s[:r.l.kWords], s[r.l.kWords : r.l.kWords+r.l.vWords]
}

// workerWords is the size of a worker's memory: see piece.
func (r *runner) workerWords() int {
	panel := r.l.depth/r.l.pair*r.width + r.l.depth*r.width + 2*r.width
	s := r.keys * r.width
	if r.k.bf16 {
		s += r.keys / 2 * r.width
	}
	return r.panels*panel + s + r.width + 8*r.l.depth + biasRows*r.keys
}

// biasRows is how many queries the bias kernel takes at once.
const biasRows = 8

// panel is some queries on their way through the keys.
type panel struct {
	q0, n   int // first query, how many
	vectors int
	width   int       // vectors · lanes
	keys    int       // how many keys it may see at all
	q       []float32 // (depth/pair, width) words
	o       []float32 // (depth, width)
	top     []float32 // largest score·c so far, (width)
	bias    []float32 // a bias of a half type, widened: (biasRows, keys)
	sum     []float32 // (width)
}

// piece computes up to r.panels panels of one query head.
func (r *runner) piece(worker, slot, batch, head, piece int) {
	p, l := r.p, &r.l
	mem := r.scratch.workers[worker]
	take := func(n int) []float32 {
		s := mem[:n:n]
		mem = mem[n:]
		return s
	}
	s := take(r.keys * r.width)
	var pairs []float32
	if r.k.bf16 {
		pairs = take(r.keys / 2 * r.width)
	}
	alpha, tmp, bias := take(r.width), take(8*l.depth), take(biasRows*r.keys)
	var panels [maxPanels]panel
	n, keys := 0, 0
	first := piece * r.panels * r.width
	end := min(first+r.panels*r.width, p.Nq)
	r.fetch(r.k.fetch, &p.Q, batch, head, first, end)
	r.fetch(r.k.fetchToWrite, &p.Out, batch, head, first, end)
	for q0 := first; q0 < end; q0 += r.width {
		t := &panels[n]
		n++
		t.q0, t.n, t.bias = q0, min(r.width, p.Nq-q0), bias
		t.vectors = (t.n + r.k.lanes - 1) / r.k.lanes
		if r.k.panel != nil {
			t.vectors = r.k.vectors
		}
		t.width = t.vectors * r.k.lanes
		t.keys = p.Nk
		if p.Causal {
			t.keys = min(p.Nk, q0+t.n)
		}
		keys = max(keys, t.keys)
		t.q, t.o = take(l.depth/l.pair*r.width), take(l.depth*r.width)
		t.top, t.sum = take(r.width), take(r.width)
		for i := range t.top {
			t.top[i] = minusInf
		}
		clear(t.sum)
		r.packQ(t.q, tmp, batch, head, q0, t.n, t.width)
		if t.keys == 0 {
			clear(t.o)
		}
	}
	k, v := r.packed(slot)
	for j := 0; j < keys; j += r.keys {
		for i := range panels[:n] {
			t := &panels[i]
			if j < t.keys {
				r.block(t, k, v, s, pairs, alpha, batch, head, j, min(r.keys, t.keys-j))
			}
		}
	}
	for i := range panels[:n] {
		t := &panels[i]
		r.store(t.o, t.sum, tmp, batch, head, t.q0, t.n, t.width)
	}
}

// block takes one panel through keys [j, j+n).
func (r *runner) block(t *panel, k, v, s, pairs, alpha []float32, batch, head, j, n int) {
	l := &r.l
	stride := uintptr(t.width) * 4
	tile := r.k.tile[t.vectors-1]
	// S (n, width) = K (n, depth) · Q (depth, width); rows beyond n are made and not used.
	if r.k.panel != nil {
		r.k.panel(n, l.depth/l.pair, &words(k)[j*l.kStride], uintptr(l.kStride)*4, &words(t.q)[0], &s[0], stride, 0)
	} else {
		for i := 0; i < n; i += r.k.rows {
			tile(l.depth/l.pair, unsafe.Pointer(&k[(j+i)*l.kStride]), uintptr(l.kStride)*4, 4, unsafe.Pointer(&t.q[0]), &s[i*t.width], nil)
		}
	}
	c := r.adjust(s, t, batch, head, j, n)

	softmax := r.k.softmax
	if r.p.DType == tensor.BF16 {
		softmax = r.k.softmaxRound
	}
	for x := 0; x < t.width; x += r.k.lanes {
		if r.k.bf16 {
			r.k.softmaxBF16(&s[x], stride, n, c, &t.top[x], &t.sum[x], &alpha[x], &words(pairs)[x])
		} else {
			softmax(&s[x], stride, n, c, &t.top[x], &t.sum[x], &alpha[x])
		}
	}

	// O (depth, width) = O·alpha + Vᵀ (depth, n) · P (n, width)
	if r.k.panel != nil {
		steps := (n + 1) / 2
		end := roundUp(steps, panelPad/2)
		clear(pairs[steps*t.width : end*t.width])
		if j > 0 {
			for d := range l.depth {
				o := t.o[d*t.width:][:t.width]
				r.f.Mul(o, o, alpha[:t.width])
			}
		}
		r.k.panel(l.depth, end, &words(v)[j/2], uintptr(l.vStride)*4, &words(pairs)[0], &t.o[0], stride, min(j, 1))
		return
	}
	a := &alpha[0]
	if j == 0 {
		a = nil
	}
	prob, steps := s, n
	if r.k.bf16 {
		prob, steps = pairs, (n+1)/2
	}
	row := j / l.pair * l.vStride
	for d := 0; d < l.depth; d += r.k.rows {
		tile(steps, unsafe.Pointer(&v[row+d]), 4, uintptr(l.vStride)*4, unsafe.Pointer(&prob[0]), &t.o[d*t.width], a)
	}
}

// adjust applies bias, mask and causality to the scores s (n, width) of keys [j, j+n), and returns the factor that takes
// them to powers of two.
func (r *runner) adjust(s []float32, t *panel, batch, head, j, n int) float32 {
	p := r.p
	c := r.scale * log2e
	w := t.width
	switch b := &p.Bias; {
	case b.given():
		c = 1
		at := func(q int) int { return batch*b.Batch + head*b.Head + (t.q0+q)*b.Query + j }
		// rows returns the biases of some queries and the elements from one to the next.
		rows := func(q, count int) ([]float32, int) {
			if b.Data != nil {
				return b.Data[at(q) : at(q+count-1)+n], b.Query
			}
			for i := range count {
				r.widen(t.bias[i*r.keys:][:n], b.Half[at(q+i):][:n], b.HalfType)
			}
			return t.bias, r.keys
		}
		q := 0
		for ; q+biasRows <= t.n; q += biasRows {
			add, stride := rows(q, biasRows)
			r.k.bias(&s[q], uintptr(w)*4, &add[0], uintptr(stride)*4, n, r.scale)
		}
		for ; q < t.n; q++ {
			add, _ := rows(q, 1)
			for i, v := range add[:n] {
				s[i*w+q] = biased(s[i*w+q], v, r.scale)
			}
		}
	case r.scale < 0: // the largest product would be the smallest score
		c = 1
		r.f.MulScalar(s[:n*w], s[:n*w], r.scale*log2e)
	}
	if m := &p.Mask; m.Data != nil {
		off := batch*m.Batch + head*m.Head + t.q0*m.Query + j
		if m.Query == 0 {
			for i, see := range m.Data[off : off+n] {
				if see == 0 {
					fill(s[i*w : i*w+w])
				}
			}
		} else {
			for q := range t.n {
				for i, see := range m.Data[off+q*m.Query : off+q*m.Query+n] {
					if see == 0 {
						s[i*w+q] = minusInf
					}
				}
			}
		}
	}
	if p.Causal {
		for i := max(0, t.q0+1-j); i < n; i++ { // key j+i is hidden from queries before it
			fill(s[i*w : i*w+min(w, j+i-t.q0)])
		}
	}
	return c
}

// widen converts half-precision numbers of type d.
func (r *runner) widen(dst []float32, x []uint16, d tensor.DType) {
	if d == tensor.BF16 {
		r.f.FromBF16(dst, x)
	} else {
		r.f.FromF16(dst, x)
	}
}

func fill(s []float32) {
	for i := range s {
		s[i] = minusInf
	}
}
