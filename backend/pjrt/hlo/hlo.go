// Package hlo counts what a program does, from the module that libtpu's compiler has left: bytes through the device's
// memory and estimated cycles.
//
//	code, _, err := executable.OptimizedProgram()
//	c, err := hlo.Count(code)
//
// The compiler's own cost analysis counts the body of a loop once and adds copies into the chip's own memory; this count
// multiplies by the number of trips, knows slices, and counts device memory only. A kernel moves its operands and results, or
// what it says that it moves if that is less. Cycles are those of the compiler's cost model for each fusion; custom calls,
// our kernels among them, have none.
package hlo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Cost is what one execution does.
type Cost struct {
	HBM     int64            `json:"hbm"`               // bytes read from and written to the device's memory
	VMEM    int64            `json:"vmem"`              // the same for the chip's own memory
	Cycles  int64            `json:"cycles"`            // estimated by the compiler, without custom calls
	Kernels map[string]int64 `json:"kernels,omitempty"` // executions of custom calls, by target
	Largest []Part           `json:"largest,omitempty"` // what takes most

	// Collectives are the bytes of results of exchanges between devices, by opcode, such as all-reduce. How long they take
	// is in no other figure.
	Collectives map[string]int64 `json:"collectives,omitempty"`
}

// Part is one instruction's share.
type Part struct {
	Name   string `json:"name"`
	HBM    int64  `json:"hbm"`
	Cycles int64  `json:"cycles"`
	Times  int64  `json:"times"`
}

// kept is how many parts a cost lists.
const kept = 12

// Count counts a module in the plugin's format "hlo_with_config".
func Count(code []byte) (*Cost, error) {
	m, err := parse(code)
	if err != nil {
		return nil, fmt.Errorf("hlo: %w", err)
	}
	c := &counter{m: m, cost: &Cost{Kernels: map[string]int64{}, Collectives: map[string]int64{}}}
	c.computation(m.computations[m.entry], 1, 0)
	if c.visits > maxVisits {
		return nil, fmt.Errorf("hlo: %w: its computations call each other without end", errProto)
	}
	parts := c.cost.Largest
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].HBM+parts[i].Cycles*100 > parts[j].HBM+parts[j].Cycles*100 })
	c.cost.Largest = parts[:min(kept, len(parts))]
	return c.cost, nil
}

type counter struct {
	m      *module
	cost   *Cost
	visits int // of instructions
}

// maxVisits bounds the work for a module whose computations call each other many times; real ones have some thousands.
const maxVisits = 1 << 20

// access is a number of bytes in a memory space.
type access struct{ bytes, space int64 }

// bits of an element by PrimitiveType; what is missing has no bytes.
var bits = map[int64]int64{
	1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16, 18: 128, 19: 8, 20: 8, 21: 4, 22: 4,
	23: 8, 24: 8, 25: 8, 26: 2, 27: 2, 28: 8, 29: 8,
}

// leaves lists the arrays of a shape.
func (s *shape) leaves() []access {
	if len(s.tuple) > 0 {
		var all []access
		for i := range s.tuple {
			all = append(all, s.tuple[i].leaves()...)
		}
		return all
	}
	n := bits[s.element]
	if n == 0 {
		return nil
	}
	for _, d := range s.dims {
		n *= d
	}
	return []access{{(n + 7) / 8, s.space}}
}

func (i *instruction) first() access {
	if l := i.shape.leaves(); len(l) > 0 {
		return l[0]
	}
	return access{}
}

// free are the instructions that move nothing themselves.
var free = map[string]bool{
	"parameter": true, "constant": true, "tuple": true, "get-tuple-element": true, "bitcast": true, "after-all": true, "partition-id": true,
	"replica-id": true, "opt-barrier": true, "copy-done": true, "async-done": true, "async-update": true, "optimization-barrier": true,
	"all-gather-done": true, "all-reduce-done": true, "collective-permute-done": true, "domain": true,
}

var (
	tripCount = regexp.MustCompile(`known_trip_count":\{"n":"(\d+)`)
	cycles    = regexp.MustCompile(`estimated_cycles":"(\d+)`)
	stated    = regexp.MustCompile(`"cost_estimate":\{[^}]*"bytes_accessed":"(\d+)`)
)

func (c *counter) computation(comp *computation, times int64, depth int) {
	if comp == nil || depth > maxDepth {
		return
	}
	for _, i := range comp.instructions {
		if c.visits++; c.visits > maxVisits {
			return
		}
		c.exchange(i, times, depth)
		switch {
		case i.opcode == "while":
			trips := c.trips(i)
			for _, id := range i.called { // the condition costs nothing that counts
				c.computation(c.m.computations[id], times*trips, depth+1)
			}
			continue
		case i.opcode == "call", i.opcode == "conditional":
			for _, id := range i.called {
				c.computation(c.m.computations[id], times, depth+1)
			}
			continue
		case free[i.opcode]:
			continue
		}
		var all []access
		switch i.opcode {
		case "fusion":
			all = c.fusion(comp, i)
		case "copy-start", "async-start":
			all = start(i)
		case "slice", "dynamic-slice":
			out := i.first()
			all = []access{out, {out.bytes, operand(comp, i, 0).first().space}}
		case "dynamic-update-slice":
			update := operand(comp, i, 1).first()
			all = []access{update, {update.bytes, i.first().space}}
		case "custom-call":
			if i.target != "tpu_custom_call" {
				switch i.target {
				case "ConcatBitcast", "AllocateBuffer", "Sharding", "GetScopedVmemMemory":
					continue
				}
			}
			c.cost.Kernels[i.target] += times
			all = limited(whole(comp, i), i.config)
		default:
			all = whole(comp, i)
		}
		part := Part{Name: i.opcode + " " + i.name, Times: times}
		for _, a := range all {
			switch a.space {
			case 0:
				part.HBM += a.bytes * times
			case 1:
				c.cost.VMEM += a.bytes * times
			}
		}
		if m := cycles.FindSubmatch(i.config); m != nil {
			if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && n < 1<<60 { // larger means unknown
				part.Cycles = n * times
			}
		}
		c.cost.HBM += part.HBM
		c.cost.Cycles += part.Cycles
		c.cost.Largest = append(c.cost.Largest, part)
	}
}

// collectives are the exchanges between devices.
var collectives = map[string]bool{
	"all-reduce": true, "all-gather": true, "reduce-scatter": true, "all-to-all": true, "collective-permute": true,
}

// exchange counts an instruction that is a collective, begins one, or has one inside.
func (c *counter) exchange(i *instruction, times int64, depth int) {
	if op := strings.TrimSuffix(i.opcode, "-start"); collectives[op] {
		l := i.shape.leaves()
		if op != i.opcode && op != "all-reduce" && len(l) > 1 { // operand and result, and what the device waits with
			l = l[1:2]
		}
		for _, a := range l {
			c.cost.Collectives[op] += a.bytes * times
		}
		return
	}
	if depth > maxDepth || i.opcode != "fusion" && i.opcode != "async-start" {
		return
	}
	for _, id := range i.called {
		if comp := c.m.computations[id]; comp != nil {
			for _, inner := range comp.instructions {
				c.exchange(inner, times, depth+1)
			}
		}
	}
}

// trips returns how often a loop's body runs: what the compiler says, or else what the loop's condition compares its index
// with, as in the loops that package mosaic writes, which count from zero by one.
func (c *counter) trips(loop *instruction) int64 {
	if m := tripCount.FindSubmatch(loop.config); m != nil {
		n, _ := strconv.ParseInt(string(m[1]), 10, 64)
		return n
	}
	for _, id := range loop.called {
		comp := c.m.computations[id]
		if comp == nil || comp.byID[comp.root] == nil || comp.byID[comp.root].opcode != "compare" {
			continue
		}
		for k := range comp.byID[comp.root].operands {
			if o := operand(comp, comp.byID[comp.root], k); o.opcode == "constant" && o.value > 0 {
				return o.value
			}
		}
	}
	return 1
}

var nothing = &instruction{}

func operand(comp *computation, i *instruction, k int) *instruction {
	if k < len(i.operands) {
		if o := comp.byID[i.operands[k]]; o != nil {
			return o
		}
	}
	return nothing
}

// whole is result and operands.
func whole(comp *computation, i *instruction) []access {
	all := i.shape.leaves()
	for k := range i.operands {
		all = append(all, operand(comp, i, k).shape.leaves()...)
	}
	return all
}

// limited takes from a kernel's accesses what goes beyond the bytes that the kernel states in its config: of the largest
// operand or result it touches a part only, as attention does that writes some columns of its result.
func limited(all []access, config []byte) []access {
	m := stated.FindSubmatch(config)
	if m == nil {
		return all
	}
	limit, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil || limit == 0 { // nothing is stated
		return all
	}
	beyond := -limit
	for _, a := range all {
		beyond += a.bytes
	}
	slices.SortStableFunc(all, func(a, b access) int { return cmp.Compare(b.bytes, a.bytes) })
	for i := range all {
		n := min(max(beyond, 0), all[i].bytes)
		all[i].bytes -= n
		beyond -= n
	}
	return all
}

// start is a copy that goes on beside other work, between the device's memory and the chip's own.
func start(i *instruction) []access {
	l := i.shape.leaves()
	if len(l) < 2 {
		return nil
	}
	n := min(l[0].bytes, l[1].bytes)
	return []access{{n, 0}, {n, 1}}
}

// fusion is the operands, or what is sliced from them, and the result, or what is written into it.
func (c *counter) fusion(comp *computation, i *instruction) []access {
	if len(i.called) == 0 || c.m.computations[i.called[0]] == nil {
		return whole(comp, i)
	}
	f := c.m.computations[i.called[0]]
	users := map[int64][]*instruction{}
	for _, x := range f.instructions {
		for _, o := range x.operands {
			users[o] = append(users[o], x)
		}
	}
	through := func(x *instruction, opcodes ...string) *instruction {
		for slices.Contains(opcodes, x.opcode) && len(x.operands) > 0 && f.byID[x.operands[0]] != nil {
			x = f.byID[x.operands[0]]
		}
		return x
	}
	all := i.shape.leaves()
	var updated *instruction // the parameter that the result is an update of
	if root := f.byID[f.root]; root != nil {
		if root = through(root, "bitcast", "copy"); root.opcode == "dynamic-update-slice" && len(all) > 0 {
			updated = through(operand(f, root, 0), "bitcast")
			all = []access{{operand(f, root, 1).first().bytes, all[0].space}}
		}
	}
	for _, p := range f.instructions {
		if p.opcode != "parameter" || p == updated && len(users[p.id]) <= 2 {
			continue
		}
		in := operand(comp, i, int(p.parameter)).shape.leaves()
		sliced, n := true, int64(0)
		var reads []*instruction
		for _, u := range users[p.id] {
			if u.opcode == "bitcast" {
				reads = append(reads, users[u.id]...)
			} else {
				reads = append(reads, u)
			}
		}
		for _, u := range reads {
			sliced = sliced && (u.opcode == "dynamic-slice" || u.opcode == "slice")
			n += u.first().bytes
		}
		if sliced && len(reads) > 0 && len(in) > 0 {
			in = []access{{n, in[0].space}}
		}
		all = append(all, in...)
	}
	return all
}
