package stablehlo

import (
	"cmp"
	"slices"

	"github.com/gesso-go/gesso/graph"
)

// A model's blocks are recorded one after the other, so a graph of 57 blocks is mostly the same few dozen operations again
// and again. What repeats is written once, as a function, and called.

// repeat is a stretch of nodes that occurs count times in a row: occurrence k is nodes[start+k*period:][:period].
type repeat struct {
	start, period, count int

	params [][]*graph.Node // of each occurrence: what its nodes take from outside
	uses   []use           // where the parameters are taken, by their number
	outs   []int           // offsets of the nodes that are used outside
}

// use says that operand of the node at offset is a parameter.
type use struct{ offset, operand, param int }

func (r *repeat) end() int { return r.start + r.period*r.count }

// The least that is worth a function: its length, and how many nodes it saves.
const (
	minPeriod = 6
	minSaved  = 12
	maxPeriod = 4096
)

// finder looks for repeats in one graph.
type finder struct {
	g     *graph.Graph
	index map[*graph.Node]int // of g.Nodes; inputs have -1
	kind  []int               // nodes of one kind differ in their operands only
	users [][]int
}

// repeats returns the repeats of g in order. They don't overlap.
func repeats(g *graph.Graph) []repeat {
	if len(g.Nodes) < minPeriod+minSaved {
		return nil
	}
	f := &finder{g: g, index: make(map[*graph.Node]int, len(g.Nodes)), kind: make([]int, len(g.Nodes)), users: make([][]int, len(g.Nodes))}
	for _, n := range g.Inputs {
		f.index[n] = -1
	}
	kinds := map[string]int{}
	var key []byte
	for i, n := range g.Nodes {
		f.index[n] = i
		key = n.Type.AppendKey(graph.AppendOpKey(key[:0], n.Op, n.Attr))
		for _, c := range n.In {
			key = c.Type.AppendKey(key)
			if p := f.index[c]; p >= 0 {
				f.users[p] = append(f.users[p], i)
			}
		}
		k, ok := kinds[string(key)]
		if !ok {
			k = len(kinds)
			kinds[string(key)] = k
		}
		f.kind[i] = k
	}
	for _, n := range g.Outputs {
		if i := f.index[n]; i >= 0 {
			f.users[i] = append(f.users[i], len(g.Nodes))
		}
	}
	var all []repeat
	f.search(0, len(g.Nodes), &all)
	slices.SortFunc(all, func(a, b repeat) int { return cmp.Compare(a.start, b.start) })
	return all
}

// search adds the repeats among the nodes from lo to hi, the most saving first.
func (f *finder) search(lo, hi int, all *[]repeat) {
	type periodic struct{ lo, hi, period int }
	var found []periodic
	for p := minPeriod; p <= min((hi-lo)/2, maxPeriod); p++ {
		for i := lo + p; i < hi; i++ {
			if f.kind[i] != f.kind[i-p] {
				continue
			}
			end := i + 1
			for end < hi && f.kind[end] == f.kind[end-p] {
				end++
			}
			if end-i >= p && (end-i)/p*p >= minSaved {
				found = append(found, periodic{i - p, end, p})
			}
			i = end
		}
	}
	saved := func(x periodic) int { return ((x.hi-x.lo)/x.period - 1) * x.period }
	slices.SortStableFunc(found, func(a, b periodic) int {
		return cmp.Or(cmp.Compare(saved(b), saved(a)), cmp.Compare(a.period, b.period))
	})
	for _, x := range found {
		if r, ok := f.align(x.lo, x.hi, x.period); ok {
			*all = append(*all, r)
			f.search(lo, r.start, all)
			f.search(r.end(), hi, all)
			return
		}
	}
}

// align chooses where in a periodic stretch the function begins: where the least goes in and out.
func (f *finder) align(lo, hi, period int) (best repeat, ok bool) {
	size := 0
	for start := lo; start < lo+period; start++ {
		r := repeat{start: start, period: period, count: (hi - start) / period}
		r.count = f.isomorphic(r)
		if r.count < 2 || (r.count-1)*period < minSaved || ok && r.count < best.count {
			continue
		}
		f.connect(&r)
		if n := len(r.params[0]) + len(r.outs); !ok || r.count > best.count || n < size {
			best, size, ok = r, n, true
		}
	}
	return best, ok
}

// isomorphic returns how many occurrences are connected inside as the first is.
func (f *finder) isomorphic(r repeat) int {
	inside := func(k int, n *graph.Node) int {
		if i := f.index[n] - r.start - k*r.period; f.index[n] >= 0 && i >= 0 && i < r.period {
			return i
		}
		return -1
	}
	for k := 1; k < r.count; k++ {
		for j := range r.period {
			a, b := f.g.Nodes[r.start+j], f.g.Nodes[r.start+k*r.period+j]
			for o := range a.In {
				if inside(0, a.In[o]) != inside(k, b.In[o]) {
					return k
				}
			}
		}
	}
	return r.count
}

// connect finds parameters and outputs. Two operands are one parameter if they are the same value in every occurrence.
func (f *finder) connect(r *repeat) {
	r.params = make([][]*graph.Node, r.count)
	used := make([]bool, r.period)
	for j := range r.period {
		for o := range f.g.Nodes[r.start+j].In {
			values := make([]*graph.Node, r.count)
			for k := range values {
				values[k] = f.g.Nodes[r.start+k*r.period+j].In[o]
			}
			if i := f.index[values[0]]; i >= r.start && i < r.start+r.period {
				continue
			}
			p := 0
			for ; p < len(r.params[0]); p++ {
				same := true
				for k := range values {
					same = same && r.params[k][p] == values[k]
				}
				if same {
					break
				}
			}
			if p == len(r.params[0]) {
				for k := range values {
					r.params[k] = append(r.params[k], values[k])
				}
			}
			r.uses = append(r.uses, use{j, o, p})
		}
		for k := range r.count {
			first := r.start + k*r.period
			for _, u := range f.users[first+j] {
				used[j] = used[j] || u >= first+r.period
			}
		}
	}
	for j, u := range used {
		if u {
			r.outs = append(r.outs, j)
		}
	}
}
