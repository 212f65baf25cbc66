package mosaic

import (
	"fmt"
	"strconv"
	"strings"
)

// version is that of the operations' serialised form. libtpu 0.0.30 (November 2025) takes up to 9, 0.0.52 from 2 to 12 and
// beyond with other attributes; the old one also wants the kernel to be called main.
const version = 9

// Attributes that most arithmetic carries.
const (
	fastmath = "{fastmath = #arith.fastmath<none>}"
	overflow = "{overflowFlags = #arith.overflow<none>}"
)

// Memory spaces of a kernel's operands.
const (
	vmem = "#tpu.memory_space<vmem>"
	smem = "#tpu.memory_space<smem>"
)

// emitter writes operations in MLIR's generic form, one a line.
type emitter struct {
	b      strings.Builder
	next   int
	indent int
}

func newEmitter() *emitter { return &emitter{indent: 2} }

func (e *emitter) line(format string, args ...any) {
	e.b.WriteString(strings.Repeat("  ", e.indent))
	fmt.Fprintf(&e.b, format, args...)
	e.b.WriteByte('\n')
}

func (e *emitter) name() string {
	e.next++
	return "%" + strconv.Itoa(e.next)
}

// op writes an operation with one result of type out.
func (e *emitter) op(name, attr string, args, types []string, out string) string {
	r := e.name()
	if attr != "" {
		attr += " "
	}
	e.line("%s = \"stable_mosaic.%s\"(%s) %s: (%s) -> %s", r, name, strings.Join(args, ", "), attr, strings.Join(types, ", "), out)
	return r
}

func (e *emitter) constant(value, t string) string {
	return e.op("arith.constant", fmt.Sprintf("{value = %s : %s}", value, t), nil, nil, t)
}

func (e *emitter) index(v int) string       { return e.constant(strconv.Itoa(v), "index") }
func (e *emitter) int32(v int) string       { return e.constant(strconv.Itoa(v), "i32") }
func (e *emitter) splat(v, t string) string { return e.constant("dense<"+v+">", t) }

// f32 writes a scalar; MLIR wants a point in it.
func (e *emitter) f32(v float64) string { return e.constant(floatText(v), "f32") }

func floatText(v float64) string {
	s := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa + "e" + exponent
}

// same writes an operation whose operands and result have one type.
func (e *emitter) same(op, attr, t string, args ...string) string {
	types := make([]string, len(args))
	for i := range types {
		types[i] = t
	}
	return e.op(op, attr, args, types, t)
}

func (e *emitter) float(op, t string, args ...string) string { return e.same(op, fastmath, t, args...) }

func (e *emitter) broadcast(x, from, to string) string {
	return e.op("vector.broadcast", "", []string{x}, []string{from}, to)
}

// load reads a matrix of type t at a row and a lane of ref.
func (e *emitter) load(ref, refType, row, lane, t string) string {
	return e.op("vector.load", "", []string{ref, row, lane}, []string{refType, "index", "index"}, t)
}

func (e *emitter) store(x, t, ref, refType, row, lane string) {
	e.line("\"stable_mosaic.tpu.vector_store\"(%s, %s, %s, %s) {add = false, operandSegmentSizes = array<i32: 1, 1, 2, 0>, strides = array<i32>} : (%s, %s, index, index) -> ()",
		x, ref, row, lane, t, refType)
}

// reduce combines a matrix along an axis into a vector of type t.
func (e *emitter) reduce(kind string, x, from string, axis int, init, t string) string {
	return e.op("vector.multi_reduction", fmt.Sprintf("{kind = #vector.kind<%s>, reduction_dims = array<i64: %d>}", kind, axis),
		[]string{x, e.splat(init, t)}, []string{from, t}, t)
}

func vector(rows, lanes int, element string) string {
	return fmt.Sprintf("vector<%dx%dx%s>", rows, lanes, element)
}

func memref(rows, lanes int, element string) string {
	return fmt.Sprintf("memref<%dx%dx%s, %s>", rows, lanes, element, vmem)
}

// withElement is the vector type t with another element type.
func withElement(t, element string) string {
	return t[:strings.LastIndexByte(t, 'x')+1] + element + ">"
}

// window is one operand of a kernel: in each step of the grid the kernel sees a block of it.
type window struct {
	rows, lanes int
	element     string
	block       string // the block's number, as two values that the grid's indices and %z, zero, may appear in
	offset      int    // added to the first of them
}

// module writes the module around a kernel's body. grid has one extent for each index; scalars are kept in scalar memory
// and known before the grid starts.
func (e *emitter) module(indices []string, grid []int, scalars []string, args []string, windows []window) string {
	scalarType := fmt.Sprintf("memref<1xi32, %s>", smem)
	var params, types, params0, types0, bounds, semantics []string
	for i, name := range indices {
		params0, types0 = append(params0, "%"+name+": i32"), append(types0, "i32")
		bounds = append(bounds, strconv.Itoa(grid[i]))
		s := "arbitrary"
		if i == 0 {
			s = "parallel"
		}
		semantics = append(semantics, "#tpu.dimension_semantics<"+s+">")
	}
	for _, name := range scalars {
		params0, types0 = append(params0, "%"+name+": "+scalarType), append(types0, scalarType)
	}
	params, types = append(params, params0...), append(types, types0...)
	for i, w := range windows {
		t := memref(w.rows, w.lanes, w.element)
		params, types = append(params, "%"+args[i]+": "+t), append(types, t)
	}
	var b strings.Builder
	b.WriteString("\"builtin.module\"() ({\n  \"stable_mosaic.func.func\"() ({\n")
	fmt.Fprintf(&b, "  ^bb0(%s):\n", strings.Join(params, ", "))
	b.WriteString(e.b.String())
	b.WriteString("    \"stable_mosaic.func.return\"() : () -> ()\n")
	var wp []string
	for i, w := range windows {
		wp = append(wp, fmt.Sprintf("{transform_indices = @t%d, window_bounds = array<i64: %d, %d>}", i, w.rows, w.lanes))
	}
	fmt.Fprintf(&b, "  }) {dimension_semantics = [%s], function_type = (%s) -> (), iteration_bounds = array<i64: %s>, scalar_prefetch = %d : i64, scratch_operands = 0 : i64, sym_name = \"main\", tpu.core_type = #tpu.core_type<tc>, window_params = [%s]} : () -> ()\n",
		strings.Join(semantics, ", "), strings.Join(types, ", "), strings.Join(bounds, ", "), len(scalars), strings.Join(wp, ", "))
	for i, w := range windows {
		fmt.Fprintf(&b, "  \"stable_mosaic.func.func\"() ({\n  ^bb0(%s):\n", strings.Join(params0, ", "))
		b.WriteString("    %z = \"stable_mosaic.arith.constant\"() {value = 0 : i32} : () -> i32\n")
		block := w.block
		if w.offset != 0 {
			first, second, _ := strings.Cut(block, ", ")
			fmt.Fprintf(&b, "    %%c = \"stable_mosaic.arith.constant\"() {value = %d : i32} : () -> i32\n", w.offset)
			fmt.Fprintf(&b, "    %%s = \"stable_mosaic.arith.addi\"(%s, %%c) %s : (i32, i32) -> i32\n", first, overflow)
			block = "%s, " + second
		}
		fmt.Fprintf(&b, "    \"stable_mosaic.func.return\"(%s) : (i32, i32) -> ()\n", block)
		fmt.Fprintf(&b, "  }) {function_type = (%s) -> (i32, i32), sym_name = \"t%d\"} : () -> ()\n", strings.Join(types0, ", "), i)
	}
	fmt.Fprintf(&b, "}) {stable_mosaic.version = %d : i64} : () -> ()\n", version)
	return b.String()
}
