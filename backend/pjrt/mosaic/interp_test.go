package mosaic

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// The interpreter executes the text of a kernel: every step of the grid on blocks of the operands, with rows outside an
// operand set to NaN. It knows the operations that kernels use and fails on any other.

// cell is a value: a scalar (no shape) or a matrix or vector.
type cell struct {
	shape   []int
	element string
	v       []float64
}

type operation struct {
	results []string
	name    string
	attr    string
	args    []string
	types   []string // of operands
	out     []string // of results
	params  []string // of the region, if there is one
	body    []*operation
}

type function struct {
	params []string
	body   []*operation
	attr   string
}

var (
	opLine    = regexp.MustCompile(`^(?:(%\w+)(?::(\d+))? = )?"stable_mosaic\.([\w.]+)"\(([^()]*)\) (?:(\{.*\}) )?: \((.*)\) -> (.*)$`)
	forLine   = regexp.MustCompile(`^(?:(%\w+):3 = )?"stable_mosaic\.scf\.for"\(([^()]*)\) \(\{$`)
	blockLine = regexp.MustCompile(`^\^bb0\((.*)\):$`)
	endFor    = regexp.MustCompile(`^\}\) : \((.*)\) -> \((.*)\)$`) // of a loop
	endFunc   = regexp.MustCompile(`^\}\) (\{.*\}) : \(\) -> \(\)$`)
	symbol    = regexp.MustCompile(`sym_name = "(\w+)"`)
)

// splitTop splits at commas outside of brackets.
func splitTop(s string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '<', '(', '[':
			depth++
		case '>', ')', ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

func paramNames(s string) []string {
	var names []string
	for _, p := range splitTop(s) {
		name, _, _ := strings.Cut(p, ":")
		names = append(names, name)
	}
	return names
}

// parseModule reads the functions of a module.
func parseModule(t *testing.T, text string) map[string]*function {
	t.Helper()
	functions := map[string]*function{}
	var f *function
	var stack []*operation // open loops
	add := func(o *operation) {
		if len(stack) > 0 {
			stack[len(stack)-1].body = append(stack[len(stack)-1].body, o)
		} else {
			f.body = append(f.body, o)
		}
	}
	for number, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == `"builtin.module"() ({`, strings.HasPrefix(line, "}) {stable_mosaic.version"):
		case line == `"stable_mosaic.func.func"() ({`:
			f = &function{}
		case forLine.MatchString(line):
			m := forLine.FindStringSubmatch(line)
			o := &operation{results: []string{m[1] + "#0", m[1] + "#1", m[1] + "#2"}, name: "scf.for", args: splitTop(m[2])}
			add(o)
			stack = append(stack, o)
		case blockLine.MatchString(line):
			names := paramNames(blockLine.FindStringSubmatch(line)[1])
			if len(stack) > 0 {
				stack[len(stack)-1].params = names
			} else {
				f.params = names
			}
		case endFor.MatchString(line):
			stack = stack[:len(stack)-1]
		case endFunc.MatchString(line):
			f.attr = endFunc.FindStringSubmatch(line)[1]
			functions[symbol.FindStringSubmatch(f.attr)[1]] = f
		case opLine.MatchString(line):
			m := opLine.FindStringSubmatch(line)
			o := &operation{name: m[3], args: splitTop(m[4]), attr: m[5], types: splitTop(m[6]), out: splitTop(strings.Trim(m[7], "()"))}
			if m[1] != "" {
				o.results = []string{m[1]}
			}
			if len(o.args) != len(o.types) {
				t.Fatalf("line %d: %d operands and %d types: %s", number+1, len(o.args), len(o.types), line)
			}
			add(o)
		default:
			t.Fatalf("line %d cannot be read: %s", number+1, line)
		}
	}
	return functions
}

// shapeOf reads vector<2x3xf32>, memref<…> or a scalar type.
func shapeOf(typ string) (shape []int, element string) {
	inner := typ
	if i := strings.IndexByte(typ, '<'); i >= 0 {
		inner, _, _ = strings.Cut(typ[i+1:len(typ)-1], ",")
	}
	parts := strings.Split(inner, "x")
	if inner == "index" {
		return nil, "index"
	}
	for _, p := range parts[:len(parts)-1] {
		n, err := strconv.Atoi(p)
		if err != nil {
			panic("type " + typ)
		}
		shape = append(shape, n)
	}
	return shape, parts[len(parts)-1]
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// rounded brings a number into its element type.
func rounded(element string, v float64) float64 {
	switch element {
	case "f32":
		return float64(float32(v))
	case "bf16":
		return float64(tensor.RoundTo(tensor.BF16, float32(v)))
	}
	return v
}

func constantOf(attr, typ string) cell {
	shape, element := shapeOf(typ)
	s := strings.TrimPrefix(attr, "{value = ")
	s, _, _ = strings.Cut(s, " : ")
	s = strings.TrimSuffix(strings.TrimPrefix(s, "dense<"), ">")
	v := math.Inf(-1)
	if s != "0xFF800000" {
		var err error
		if v, err = strconv.ParseFloat(s, 64); err != nil {
			panic("constant " + attr)
		}
	}
	c := cell{shape, element, make([]float64, size(shape))}
	for i := range c.v {
		c.v[i] = rounded(element, v)
	}
	return c
}

func attribute(attr, key string) string {
	_, rest, ok := strings.Cut(attr, key+" = ")
	if !ok {
		panic(key + " is missing in " + attr)
	}
	return rest
}

// number returns the nth integer after key.
func number(attr, key string, n int) int {
	all := regexp.MustCompile(`: (-?\d+)|, (-?\d+)|\[(\d+)\]`).FindAllStringSubmatch(attribute(attr, key), n+1)
	m := all[n]
	v, err := strconv.Atoi(m[1] + m[2] + m[3])
	if err != nil {
		panic(attr)
	}
	return v
}

func (f *function) run(t *testing.T, env map[string]cell) []cell { return runBlock(t, f.body, env) }

func runBlock(t *testing.T, body []*operation, env map[string]cell) []cell {
	t.Helper()
	for _, o := range body {
		in := make([]cell, len(o.args))
		for i, a := range o.args {
			c, ok := env[a]
			if !ok {
				t.Fatalf("%s is used before it is set", a)
			}
			in[i] = c
			if len(o.types) > 0 {
				if shape, element := shapeOf(o.types[i]); fmt.Sprint(shape) != fmt.Sprint(c.shape) || element != c.element {
					t.Fatalf("%s: operand %s is %v %s, written as %s", o.name, a, c.shape, c.element, o.types[i])
				}
			}
		}
		switch o.name {
		case "func.return", "scf.yield":
			return in
		case "scf.for":
			state := in[3:]
			for i := in[0].v[0]; i < in[1].v[0]; i += in[2].v[0] {
				env[o.params[0]] = cell{nil, "i32", []float64{i}}
				for k, s := range state {
					env[o.params[1+k]] = s
				}
				state = runBlock(t, o.body, env)
			}
			for k, s := range state {
				env[o.results[k]] = s
			}
			continue
		case "tpu.vector_store":
			x, to, row, lane := in[0], in[1], int(in[2].v[0]), int(in[3].v[0])
			for i := range x.shape[0] {
				copy(to.v[(row+i)*to.shape[1]+lane:][:x.shape[1]], x.v[i*x.shape[1]:])
			}
			continue
		}
		shape, element := shapeOf(o.out[0])
		out := cell{shape, element, make([]float64, size(shape))}
		compute(t, o, in, &out)
		for i, v := range out.v {
			out.v[i] = rounded(element, v)
		}
		env[o.results[0]] = out
	}
	return nil
}

var elementwise = map[string]func(a []float64) float64{
	"arith.addf": func(a []float64) float64 { return a[0] + a[1] }, "arith.addi": func(a []float64) float64 { return a[0] + a[1] },
	"arith.subf": func(a []float64) float64 { return a[0] - a[1] }, "arith.subi": func(a []float64) float64 { return a[0] - a[1] },
	"arith.mulf": func(a []float64) float64 { return a[0] * a[1] }, "arith.muli": func(a []float64) float64 { return a[0] * a[1] },
	"arith.divf": func(a []float64) float64 { return a[0] / a[1] }, "arith.maximumf": func(a []float64) float64 { return max(a[0], a[1]) },
	"arith.andi":   func(a []float64) float64 { return float64(int(a[0]) & int(a[1])) },
	"math.exp2":    func(a []float64) float64 { return math.Exp2(a[0]) },
	"math.rsqrt":   func(a []float64) float64 { return 1 / math.Sqrt(a[0]) },
	"arith.truncf": func(a []float64) float64 { return a[0] }, "arith.extf": func(a []float64) float64 { return a[0] },
	"arith.index_cast": func(a []float64) float64 { return a[0] }, "tpu.assume_multiple": func(a []float64) float64 { return a[0] },
	"vector.shape_cast": func(a []float64) float64 { return a[0] },
	"arith.select": func(a []float64) float64 {
		if a[0] != 0 {
			return a[1]
		}
		return a[2]
	},
}

func compute(t *testing.T, o *operation, in []cell, out *cell) {
	t.Helper()
	if fn, ok := elementwise[o.name]; ok {
		a := make([]float64, len(in))
		for i := range out.v {
			for k, c := range in {
				if len(c.v) != len(out.v) {
					t.Fatalf("%s of %v and %v", o.name, c.shape, out.shape)
				}
				a[k] = c.v[i]
			}
			out.v[i] = fn(a)
		}
		return
	}
	cols := 1
	if len(out.shape) == 2 {
		cols = out.shape[1]
	}
	switch o.name {
	case "arith.constant":
		*out = constantOf(o.attr, o.out[0])
	case "memref.load":
		out.v[0] = in[0].v[int(in[1].v[0])]
	case "vector.load":
		row, lane, width := int(in[1].v[0]), int(in[2].v[0]), in[0].shape[1]
		if row < 0 || lane < 0 || row+out.shape[0] > in[0].shape[0] || lane+cols > width {
			t.Fatalf("load of %v at %d, %d from %v", out.shape, row, lane, in[0].shape)
		}
		for i := range out.shape[0] {
			copy(out.v[i*cols:][:cols], in[0].v[(row+i)*width+lane:])
		}
	case "vector.broadcast":
		for i := range out.v {
			switch s := in[0].shape; {
			case len(s) == 0:
				out.v[i] = in[0].v[0]
			case s[0] == 1:
				out.v[i] = in[0].v[i%cols]
			case s[1] == 1:
				out.v[i] = in[0].v[i/cols]
			default:
				t.Fatalf("broadcast of %v to %v", s, out.shape)
			}
		}
	case "arith.cmpi":
		predicate := strings.TrimSpace(strings.SplitN(attribute(o.attr, "predicate"), ":", 2)[0])
		for i := range out.v {
			if predicate == "0" && in[0].v[i] == in[1].v[i] || predicate == "2" && in[0].v[i] < in[1].v[i] {
				out.v[i] = 1
			}
		}
	case "tpu.iota":
		axis := number(o.attr, "dimensions", 0)
		for i := range out.v {
			out.v[i] = float64([]int{i / cols, i % cols}[axis])
		}
	case "tpu.transpose":
		for i := range out.v {
			out.v[i] = in[0].v[i%cols*in[0].shape[1]+i/cols]
		}
	case "tpu.dynamic_rotate": // element i goes to i + by
		by := int(in[1].v[0])
		for i := range out.v {
			out.v[i] = in[0].v[i/cols*cols+(i%cols+cols-by)%cols]
		}
	case "vector.multi_reduction":
		axis, width := number(o.attr, "reduction_dims", 0), in[0].shape[1]
		copy(out.v, in[1].v)
		for i, v := range in[0].v {
			k := []int{i % width, i / width}[axis]
			if strings.Contains(o.attr, "maximumf") {
				out.v[k] = max(out.v[k], v)
			} else {
				out.v[k] += v
			}
		}
	case "tpu.matmul":
		x, y := number(o.attr, "dimension_numbers", 0), number(o.attr, "dimension_numbers", 1)
		a, b := in[0], in[1]
		n := a.shape[x]
		if b.shape[y] != n {
			t.Fatalf("product of %v and %v over %d and %d", a.shape, b.shape, x, y)
		}
		strides := func(c cell, contracted int) (free, k int) {
			if contracted == 0 {
				return 1, c.shape[1]
			}
			return c.shape[1], 1
		}
		ai, ak := strides(a, x)
		bj, bk := strides(b, y)
		for i := range out.shape[0] {
			for j := range cols {
				sum := in[2].v[i*cols+j]
				for k := range n {
					sum += a.v[i*ai+k*ak] * b.v[j*bj+k*bk]
				}
				out.v[i*cols+j] = sum
			}
		}
	default:
		t.Fatalf("operation %s is unknown", o.name)
	}
}

var integers = regexp.MustCompile(`-?\d+`)

func list(t *testing.T, s string) []int {
	t.Helper()
	s, _, _ = strings.Cut(s, ">")
	_, s, _ = strings.Cut(s, ":")
	var out []int
	for _, m := range integers.FindAllString(s, -1) {
		n, err := strconv.Atoi(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// execute runs a kernel on matrices; the last is the result, whose rows begin as NaN. If it is the first, the kernel works
// in place: operand and result are one memory, and so are their blocks.
func execute(t *testing.T, text string, scalars []float64, operands []cell) cell {
	t.Helper()
	functions := parseModule(t, text)
	main := functions["main"]
	grid := list(t, attribute(main.attr, "iteration_bounds"))
	bounds := regexp.MustCompile(`window_bounds = (array<i64: \d+, \d+>)`).FindAllStringSubmatch(main.attr, -1)
	if len(bounds) != len(operands) {
		t.Fatalf("%d windows, %d operands", len(bounds), len(operands))
	}
	steps := size(grid)
	for step := range steps {
		env := map[string]cell{}
		at := step
		indices := make([]cell, len(grid))
		for i := len(grid) - 1; i >= 0; i-- {
			indices[i] = cell{nil, "i32", []float64{float64(at % grid[i])}}
			at /= grid[i]
		}
		for _, s := range scalars {
			indices = append(indices, cell{[]int{1}, "i32", []float64{s}})
		}
		for i, c := range indices {
			env[main.params[i]] = c
		}
		var result cell
		var place []int
		for k, x := range operands {
			w := list(t, bounds[k][1])
			tf := functions["t"+strconv.Itoa(k)]
			tenv := map[string]cell{}
			for i, c := range indices {
				tenv[tf.params[i]] = c
			}
			o := tf.run(t, tenv)
			row, lane := int(o[0].v[0])*w[0], int(o[1].v[0])*w[1]
			block := cell{w, x.element, make([]float64, w[0]*w[1])}
			for i := range block.v {
				r, c := row+i/w[1], lane+i%w[1]
				block.v[i] = math.NaN()
				if r < x.shape[0] && c < x.shape[1] {
					block.v[i] = x.v[r*x.shape[1]+c]
				}
			}
			if k == len(operands)-1 && &x.v[0] == &operands[0].v[0] {
				block = env[main.params[len(indices)]]
			}
			env[main.params[len(indices)+k]] = block
			result, place = block, []int{row, lane}
		}
		main.run(t, env)
		out := operands[len(operands)-1]
		for i, v := range result.v {
			r, c := place[0]+i/result.shape[1], place[1]+i%result.shape[1]
			if r < out.shape[0] && c < out.shape[1] {
				out.v[r*out.shape[1]+c] = v
			}
		}
	}
	return operands[len(operands)-1]
}
