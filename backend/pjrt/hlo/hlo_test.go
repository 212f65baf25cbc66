package hlo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

// Messages of the test, written as the compiler does.

func number(field int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), uint64(v))
}

func part(field int, b ...[]byte) []byte {
	all := join(b...)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(all))), all...)
}

func join(b ...[]byte) []byte { return bytes.Join(b, nil) }

const (
	f32  = 11
	bf16 = 16
)

// array is the shape of an array in a memory space.
func array(element, space int64, dims ...int64) []byte {
	s := number(2, element)
	for _, d := range dims {
		s = append(s, number(3, d)...)
	}
	return append(s, part(5, number(8, space))...)
}

func tuple(shapes ...[]byte) []byte {
	var s []byte
	for _, t := range shapes {
		s = append(s, part(4, t)...)
	}
	return s
}

// instr is an instruction of a computation; more are its other fields.
func instr(id int64, opcode string, shape []byte, operands []int64, more ...[]byte) []byte {
	b := join(part(1, []byte(opcode+"."+string(rune('0'+id)))), part(2, []byte(opcode)), part(3, shape), number(35, id))
	for _, o := range operands {
		b = append(b, number(36, o)...)
	}
	return append(b, join(more...)...)
}

func comp(id, root int64, instructions ...[]byte) []byte {
	var b []byte
	for _, i := range instructions {
		b = append(b, part(2, i)...)
	}
	return join(b, number(5, id), number(6, root))
}

// modul is a module with the first computation as its entry.
func modul(computations ...[]byte) []byte {
	b := number(6, 1)
	for _, c := range computations {
		b = append(b, part(3, c)...)
	}
	return part(1, b)
}

func count(t *testing.T, code []byte) *Cost {
	t.Helper()
	c, err := Count(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func config(s string) []byte { return part(43, []byte(s)) }

// An instruction reads its operands and writes its result, each in the memory where it lies; what moves nothing is free.
func TestCount(t *testing.T) {
	a, v := array(f32, 0, 10, 10), array(bf16, 1, 10, 10)
	c := count(t, modul(comp(1, 3,
		instr(1, "parameter", a, nil),
		instr(2, "parameter", v, nil),
		instr(3, "add", a, []int64{1, 2}, config(`{"estimated_cycles":"77"}`)),
		instr(4, "bitcast", a, []int64{3}),
	)))
	if c.HBM != 800 || c.VMEM != 200 || c.Cycles != 77 || len(c.Largest) != 1 || c.Largest[0].Name != "add add.3" {
		t.Errorf("%+v", c)
	}
}

// The body of a loop counts as often as it runs, also within another loop; cycles that the compiler doesn't know don't
// count.
func TestLoops(t *testing.T) {
	a := array(f32, 0, 25)
	loop := func(id int64, n string, body int64) []byte {
		return instr(id, "while", a, []int64{1}, number(38, body), config(`{"known_trip_count":{"n":"`+n+`"}}`))
	}
	p := instr(1, "parameter", a, nil)
	c := count(t, modul(
		comp(1, 2, p, loop(2, "3", 2)),
		comp(2, 3, p, instr(2, "negate", a, []int64{1}, config(`"estimated_cycles":"10"`)), loop(3, "4", 3)),
		comp(3, 2, p, instr(2, "copy", a, []int64{1}, config(`"estimated_cycles":"9223372036854775807"`))),
	))
	if want := int64(3*200 + 3*4*200); c.HBM != want || c.Cycles != 30 {
		t.Errorf("%d bytes of %d, %d cycles of 30", c.HBM, want, c.Cycles)
	}
}

// Where the compiler doesn't say how often a loop runs, its condition does.
func TestCondition(t *testing.T) {
	a, n, yes := array(f32, 0, 25), array(4, 0), array(1, 0)
	loop := instr(2, "while", a, []int64{1}, number(38, 2), number(38, 3))
	p := instr(1, "parameter", a, nil)
	for name, literal := range map[string][]byte{
		"packed": part(8, part(4, []byte{0x80, 2})),
		"single": part(8, number(4, 256)),
	} {
		condition := comp(3, 4, p, instr(2, "constant", n, nil, literal), instr(3, "get-tuple-element", n, []int64{1}),
			instr(4, "compare", yes, []int64{3, 2}))
		c := count(t, modul(comp(1, 2, p, loop), comp(2, 2, p, instr(2, "negate", a, []int64{1})), condition))
		if len(c.Largest) == 0 || c.Largest[0].Times != 256 || c.Largest[0].HBM != 256*200 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Slices move what they take, updates what they put; a fusion reads of a parameter only what it slices from it.
func TestSlices(t *testing.T) {
	big, small := array(f32, 0, 1000), array(f32, 0, 10)
	for name, test := range map[string]struct {
		code []byte
		want int64
	}{
		"slice": {modul(comp(1, 2, instr(1, "parameter", big, nil), instr(2, "slice", small, []int64{1}))), 80},
		"update": {modul(comp(1, 3, instr(1, "parameter", big, nil), instr(2, "parameter", small, nil),
			instr(3, "dynamic-update-slice", big, []int64{1, 2}))), 80},
		"fusion": {modul(comp(1, 2, instr(1, "parameter", big, nil), instr(2, "fusion", small, []int64{1}, number(38, 2))),
			comp(2, 2, instr(1, "parameter", big, nil), instr(2, "dynamic-slice", small, []int64{1}))), 80},
		"fused update": {modul(comp(1, 3, instr(1, "parameter", big, nil), instr(2, "parameter", small, nil),
			instr(3, "fusion", big, []int64{1, 2}, number(38, 2))),
			comp(2, 3, instr(1, "parameter", big, nil), instr(2, "parameter", small, nil, number(9, 1)),
				instr(3, "dynamic-update-slice", big, []int64{1, 2}))), 80},
		"fusion of all": {modul(comp(1, 2, instr(1, "parameter", big, nil), instr(2, "fusion", big, []int64{1}, number(38, 2))),
			comp(2, 2, instr(1, "parameter", big, nil), instr(2, "negate", big, []int64{1}))), 8000},
	} {
		if c := count(t, test.code); c.HBM != test.want {
			t.Errorf("%s: %d bytes, expected %d", name, c.HBM, test.want)
		}
	}
}

// A copy that goes on beside other work moves its bytes once out of one memory and once into the other.
func TestCopies(t *testing.T) {
	a, v := array(bf16, 0, 50), array(bf16, 1, 50)
	c := count(t, modul(comp(1, 3, instr(1, "parameter", a, nil),
		instr(2, "copy-start", tuple(v, a, array(8, 0)), []int64{1}), instr(3, "copy-done", v, []int64{2}))))
	if c.HBM != 100 || c.VMEM != 100 {
		t.Errorf("%+v", c)
	}
}

// Kernels are counted by target.
func TestKernels(t *testing.T) {
	a := array(f32, 0, 5)
	c := count(t, modul(comp(1, 4, instr(1, "parameter", a, nil),
		instr(2, "custom-call", a, []int64{1}, part(28, []byte("tpu_custom_call"))),
		instr(3, "custom-call", a, []int64{2}, part(28, []byte("tpu_custom_call"))),
		instr(4, "custom-call", a, nil, part(28, []byte("AllocateBuffer"))))))
	if want := map[string]int64{"tpu_custom_call": 2}; !reflect.DeepEqual(c.Kernels, want) || c.HBM != 80 {
		t.Errorf("%+v", c)
	}
}

// A kernel that states fewer bytes than its operands and results have touches a part of the largest: here 40 bytes of a
// result of 400, beside an operand of 100 in the chip's own memory.
func TestStated(t *testing.T) {
	v, out := array(bf16, 1, 50), array(f32, 0, 100)
	for bytes, want := range map[string][2]int64{"140": {40, 100}, "500": {400, 100}, "900": {400, 100}, "0": {400, 100}, "50": {0, 50}} {
		kernel := config(`{"custom_call_config":{"cost_estimate":{"flops":"7","bytes_accessed":"` + bytes + `"}}}`)
		c := count(t, modul(comp(1, 2, instr(1, "parameter", v, nil),
			instr(2, "custom-call", out, []int64{1}, part(28, []byte("tpu_custom_call")), kernel))))
		if got := [2]int64{c.HBM, c.VMEM}; got != want {
			t.Errorf("%s bytes stated: %v, expected %v", bytes, got, want)
		}
	}
}

func TestDamaged(t *testing.T) {
	good := modul(comp(1, 1, instr(1, "parameter", array(f32, 0, 5), nil)))
	for name, code := range map[string][]byte{
		"empty":       nil,
		"cut":         good[:len(good)-1],
		"no entry":    part(1, number(6, 9)),
		"wrong type":  {7<<3 | 3},
		"long number": {8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if c, err := Count(code); !errors.Is(err, errProto) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// Computations that call each other in a circle, and tuples without end, come to an end.
func TestCircles(t *testing.T) {
	call := func(id int64) []byte { return comp(id, 1, instr(1, "call", array(f32, 0, 1), nil, number(38, 3-id))) }
	count(t, modul(call(1), call(2)))
	wide := comp(1, 1, instr(1, "call", array(f32, 0, 1), nil, number(38, 1), number(38, 1), number(38, 1)))
	if _, err := Count(modul(wide)); !errors.Is(err, errProto) {
		t.Errorf("a computation that calls itself thrice: %v", err)
	}
	s := array(f32, 0, 1)
	for range 2 * maxDepth {
		s = tuple(s)
	}
	if _, err := Count(modul(comp(1, 1, instr(1, "parameter", s, nil)))); !errors.Is(err, errProto) {
		t.Errorf("got %v", err)
	}
}

// Whatever the bytes are, counting ends with a cost or an error.
func FuzzCount(f *testing.F) {
	a, v := array(f32, 0, 4), array(bf16, 1, 4)
	f.Add(modul(comp(1, 3, instr(1, "parameter", a, nil), instr(2, "parameter", v, nil), instr(3, "add", a, []int64{1, 2}))))
	f.Add(modul(comp(1, 2, instr(1, "parameter", a, nil), instr(2, "fusion", a, []int64{1}, number(38, 2))),
		comp(2, 2, instr(1, "parameter", a, nil), instr(2, "dynamic-slice", v, []int64{1}))))
	f.Add(modul(comp(1, 1, instr(1, "while", tuple(a, v), []int64{1}, number(38, 1), config(`known_trip_count":{"n":"7"`)))))
	f.Add(modul(comp(1, 1, instr(1, "call", a, nil, number(38, 1), number(38, 1), number(38, 1)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Count(b)
		if (c == nil) == (err == nil) {
			t.Errorf("%+v, %v", c, err)
		}
		if c != nil && len(c.Largest) > kept {
			t.Errorf("%d parts", len(c.Largest))
		}
	})
}

// Exchanges between devices are counted by what they result in, wherever they are: apart, begun and ended, in an
// asynchronous call, or in a loop.
func TestCollectives(t *testing.T) {
	small, large := array(f32, 0, 8), array(f32, 0, 32)
	c := count(t, modul(
		comp(1, 7,
			instr(2, "parameter", small, nil, number(9, 0)),
			instr(3, "all-reduce", small, []int64{2}),
			instr(4, "all-gather-start", tuple(small, large), []int64{3}),
			instr(5, "all-gather-done", large, []int64{4}),
			instr(6, "async-start", tuple(small, small), []int64{2}, number(38, 10)),
			instr(7, "while", small, []int64{6}, number(38, 20), part(43, []byte(`{"known_trip_count":{"n":"3"}}`))),
		),
		comp(10, 12, instr(11, "parameter", small, nil, number(9, 0)), instr(12, "all-to-all", small, []int64{11})),
		comp(20, 22, instr(21, "parameter", small, nil, number(9, 0)), instr(22, "all-reduce", small, []int64{21})),
	))
	want := map[string]int64{"all-reduce": 32 + 3*32, "all-gather": 128, "all-to-all": 32}
	if !reflect.DeepEqual(c.Collectives, want) {
		t.Errorf("%v, expected %v", c.Collectives, want)
	}
}
