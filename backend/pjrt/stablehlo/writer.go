package stablehlo

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Value is an SSA value of the text.
type Value struct {
	Name string // with its %
	graph.Type
}

// Writer writes the operations of one module. Every method appends to the function that is being written and returns the
// new value; operands must belong to that function.
type Writer struct {
	options Options
	*function
	private []string // functions beside @main, whole
	symbols map[string]bool
}

// function is the function that is being written.
type function struct {
	text   strings.Builder
	indent string
	next   int
	seen   map[string]Value // constants and broadcasts, which are written once
}

// Op writes one operation in StableHLO's pretty form, for instance Op(t, "stablehlo.tanh %s : %s", x.Name, x.TypeText()),
// and returns its single result of type t.
func (w *Writer) Op(t graph.Type, format string, args ...any) Value {
	v := Value{fmt.Sprintf("%%%d", w.next), t}
	w.next++
	w.text.WriteString(w.indent + v.Name + " = ")
	fmt.Fprintf(&w.text, format, args...)
	w.text.WriteByte('\n')
	return v
}

// once writes what op writes unless the same key has been written in this function before.
func (w *Writer) once(key string, op func() Value) Value {
	if v, ok := w.seen[key]; ok {
		return v
	}
	v := op()
	if w.seen == nil {
		w.seen = make(map[string]Value)
	}
	w.seen[key] = v
	return v
}

// Function adds a private function to the module, unless one of that name has been added, and calls it. The text has to
// start with func.func private @name.
func (w *Writer) Function(name, text string, result graph.Type, args ...Value) Value {
	if !w.symbols[name] {
		if w.symbols == nil {
			w.symbols = make(map[string]bool)
		}
		w.symbols[name] = true
		for line := range strings.Lines(text) {
			w.private = append(w.private, "  "+line)
		}
	}
	names, types := make([]string, len(args)), make([]string, len(args))
	for i, a := range args {
		names[i], types[i] = a.Name, a.TypeText()
	}
	return w.Op(result, "call @%s(%s) : (%s) -> %s", name, strings.Join(names, ", "), strings.Join(types, ", "), typeText(result))
}

// TypeText returns v's type as StableHLO writes it.
func (v Value) TypeText() string { return typeText(v.Type) }

// TypeText returns t as StableHLO writes it, for instance tensor<2x3xbf16>.
func TypeText(t graph.Type) string { return typeText(t) }

func typeText(t graph.Type) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range t.Shape {
		fmt.Fprintf(&b, "%dx", d)
	}
	b.WriteString(elementText(t.DType))
	b.WriteByte('>')
	return b.String()
}

func elementText(d tensor.DType) string {
	switch d {
	case tensor.Bool:
		return "i1"
	case tensor.U8:
		return "ui8"
	case tensor.F8E4M3:
		return "f8E4M3FN"
	case tensor.F8E5M2:
		return "f8E5M2"
	}
	return d.String()
}

// ints writes [1, 2, 3].
func ints(v []int) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }

// same writes an operation whose operands and result all have x's type.
func (w *Writer) same(op string, x Value, more ...Value) Value {
	names := x.Name
	for _, m := range more {
		names += ", " + m.Name
	}
	return w.Op(x.Type, "%s %s : %s", op, names, x.TypeText())
}

// to writes an operation with one operand, attributes and a result type.
func (w *Writer) to(t graph.Type, op string, x Value, attr string) Value {
	return w.Op(t, "%s %s%s : (%s) -> %s", op, x.Name, attr, x.TypeText(), typeText(t))
}

// Convert returns x as dtype d.
func (w *Writer) Convert(x Value, d tensor.DType) Value {
	if x.DType == d {
		return x
	}
	return w.to(graph.Type{DType: d, Shape: x.Shape}, "stablehlo.convert", x, "")
}

// Reshape returns x with another shape.
func (w *Writer) Reshape(x Value, shape ...int) Value {
	if x.Shape.Equal(shape) {
		return x
	}
	return w.to(graph.Type{DType: x.DType, Shape: shape}, "stablehlo.reshape", x, "")
}

// Transpose returns x with axis i of the result being axis perm[i] of x.
func (w *Writer) Transpose(x Value, perm ...int) Value {
	shape := make(tensor.Shape, len(perm))
	for i, p := range perm {
		shape[i] = x.Shape[p]
	}
	return w.to(graph.Type{DType: x.DType, Shape: shape}, "stablehlo.transpose", x, ", dims = "+ints(perm))
}

// BroadcastInDim places axis i of x at axis axes[i] of shape.
func (w *Writer) BroadcastInDim(x Value, shape tensor.Shape, axes []int) Value {
	if x.Shape.Equal(shape) {
		return x
	}
	t := graph.Type{DType: x.DType, Shape: shape}
	return w.once(fmt.Sprintf("broadcast %s %v %s", x.Name, axes, t), func() Value {
		return w.to(t, "stablehlo.broadcast_in_dim", x, ", dims = "+ints(axes))
	})
}

// Broadcast extends x to shape by NumPy's rule.
func (w *Writer) Broadcast(x Value, shape tensor.Shape) Value {
	axes := make([]int, len(x.Shape))
	for i := range axes {
		axes[i] = len(shape) - len(axes) + i
	}
	return w.BroadcastInDim(x, shape, axes)
}

// Binary writes an elementwise operation of the two values, which have one dtype and are broadcast to a common shape.
func (w *Writer) Binary(op string, x, y Value) (Value, error) {
	shape, err := graph.Broadcast(x.Shape, y.Shape)
	if err != nil {
		return Value{}, err
	}
	return w.same(op, w.Broadcast(x, shape), w.Broadcast(y, shape)), nil
}

// Compare writes a comparison, such as "LT", of two values of one type.
func (w *Writer) Compare(direction string, x, y Value) Value {
	t := graph.Type{DType: tensor.Bool, Shape: x.Shape}
	return w.Op(t, "stablehlo.compare %s, %s, %s : (%s, %s) -> %s", direction, x.Name, y.Name, x.TypeText(), y.TypeText(), typeText(t))
}

// Select takes elements of x where p is true and of y elsewhere; the three shapes are equal.
func (w *Writer) Select(p, x, y Value) Value {
	return w.Op(x.Type, "stablehlo.select %s, %s, %s : %s, %s", p.Name, x.Name, y.Name, p.TypeText(), x.TypeText())
}
