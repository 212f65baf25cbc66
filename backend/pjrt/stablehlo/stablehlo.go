// Package stablehlo writes graphs as StableHLO text, which every PJRT plugin compiles.
//
//	text, err := stablehlo.Text(g, stablehlo.Options{})
//
// gives for x·2 of three numbers, with g named "twice":
//
//	module @twice {
//	  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
//	    %0 = stablehlo.constant dense<2.0> : tensor<f32>
//	    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
//	    %2 = stablehlo.multiply %arg0, %1 : tensor<3xf32>
//	    return %2 : tensor<3xf32>
//	  }
//	}
//
// The text is deterministic, has one operation a line, and uses nothing newer than StableHLO 1.13. It says explicitly what
// the graph implies: NumPy's broadcasts, the f32 in which an operation on a half type computes, the f32 in which sums
// accumulate. Composites are written as their decomposition, unless [Options.Kernel] writes them. What
// repeats, as the blocks of a model do, is a private function that is called.
//
// A compiler may still leave out a rounding to a half type between two operations of one program ("excess precision" in
// XLA); whoever compiles the text turns that off where results must not depend on where programs are cut.
package stablehlo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/graph"
)

// Options is how a graph is written. The zero value is right for every plugin.
type Options struct {
	// Apart, if set, reports whether a result should not lie where a donated input of its type was.
	Apart func(in, out *graph.Node) bool

	// Kernel returns what writes a composite node in a way of its own, or nil for its decomposition.
	Kernel func(n *graph.Node) Kernel

	// Shards, if set, divides the program among devices. The compiler's partitioner derives the rest from its inputs.
	Shards *Shards

	// Rewrite, if set, changes a graph before it is written. Inputs and outputs must stay as they are.
	Rewrite func(g *graph.Graph) (*graph.Graph, error)

	// ErfInPrimitives writes erf as a polynomial in place of chlo.erf, for a parser that lacks the CHLO dialect.
	ErfInPrimitives bool
}

// Kernel writes one composite operation on the given operands and returns its value, which must have n's type.
type Kernel func(w *Writer, n *graph.Node, in []Value) (Value, error)

// Text returns the module for g. Its entry is @main, as PJRT wants; g's name is the module's.
func Text(g *graph.Graph, o Options) (string, error) {
	attributes, err := attributes(g, o)
	if err != nil {
		return "", err
	}
	if o.Rewrite != nil {
		if g, err = o.Rewrite(g); err != nil {
			return "", fmt.Errorf("stablehlo: rewrite: %w", err)
		}
	}
	w := &Writer{options: o}
	body := &function{indent: "    "}
	w.function = body
	value := make(map[*graph.Node]Value, len(g.Inputs)+len(g.Nodes))
	params := make([]string, len(g.Inputs))
	for i, n := range g.Inputs {
		value[n] = Value{fmt.Sprintf("%%arg%d", i), n.Type}
		params[i] = value[n].Name + ": " + typeText(n.Type) + attributes[i]
	}
	if err := w.graph(g, value); err != nil {
		return "", err
	}
	names, types := make([]string, len(g.Outputs)), make([]string, len(g.Outputs))
	for i, n := range g.Outputs {
		names[i], types[i] = value[n].Name, typeText(n.Type)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "module @%s%s {\n", symbol(g.Name), o.Shards.module())
	b.WriteString(o.Shards.declaration())
	fmt.Fprintf(&b, "  func.func public @main(%s)%s {\n", strings.Join(params, ", "), o.Shards.results(g.Outputs, types))
	b.WriteString(body.text.String())
	b.WriteString(returns(names, types, "    "))
	b.WriteString("  }\n")
	for _, p := range w.private {
		b.WriteString(p)
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// attributes returns what @main says about each of its parameters, as text with a space before it.
func attributes(g *graph.Graph, o Options) ([]string, error) {
	lists := make([][]string, len(g.Inputs))
	if err := donations(g, o, lists); err != nil {
		return nil, err
	}
	if err := o.Shards.add(g, lists); err != nil {
		return nil, err
	}
	text := make([]string, len(lists))
	for i, l := range lists {
		if len(l) > 0 {
			text[i] = " {" + strings.Join(l, ", ") + "}"
		}
	}
	return text, nil
}

// donations adds what to do with the memory of donated parameters: the first output of the same type lies there, one for each,
// unless it should stay apart; where there is none, the compiler may find a use for it.
func donations(g *graph.Graph, o Options, lists [][]string) error {
	taken := map[*graph.Node]bool{}
	for _, i := range g.Donated {
		if i < 0 || i >= len(g.Inputs) {
			return fmt.Errorf("stablehlo: graph %s has no input %d to donate", g.Name, i)
		}
		in := g.Inputs[i]
		n := slices.IndexFunc(g.Outputs, func(out *graph.Node) bool { return out.Type.Equal(in.Type) && !taken[out] })
		switch {
		case n < 0:
			lists[i] = append(lists[i], "jax.buffer_donor = true")
		case o.Apart == nil || !o.Apart(in, g.Outputs[n]):
			taken[g.Outputs[n]] = true
			lists[i] = append(lists[i], fmt.Sprintf("tf.aliasing_output = %d : i32", n))
		}
	}
	return nil
}

// returns writes the end of a function.
func returns(names, types []string, indent string) string {
	if len(names) == 0 {
		return indent + "return\n"
	}
	return fmt.Sprintf("%sreturn %s : %s\n", indent, strings.Join(names, ", "), strings.Join(types, ", "))
}

// lower rewrites the composites that no kernel writes. Names survive: New is given g's.
func lower(g *graph.Graph, o Options) (*graph.Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return n.Op.IsComposite() }) {
		return g, nil
	}
	low, err := graph.Lower(g, func(n *graph.Node) bool { return o.Kernel != nil && o.Kernel(n) != nil })
	if err != nil {
		return nil, fmt.Errorf("stablehlo: graph %s: %w", g.Name, err)
	}
	return low, nil
}

// results writes a function's result types.
func results(types []string) string {
	switch len(types) {
	case 0:
		return ""
	case 1:
		return " -> " + types[0]
	}
	return " -> (" + strings.Join(types, ", ") + ")"
}

// symbol makes a name that needs no quotes.
func symbol(name string) string {
	out := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if out == "" || out[0] >= '0' && out[0] <= '9' {
		out = "_" + out
	}
	return out
}
