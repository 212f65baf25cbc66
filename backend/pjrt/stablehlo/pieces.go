package stablehlo

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/graph"
)

// graph writes all of g into the current function and adds the values of its outputs to value, which holds the inputs'.
func (w *Writer) graph(g *graph.Graph, value map[*graph.Node]Value) error {
	found := repeats(g)
	if len(found) == 0 {
		return w.nodes(g, value)
	}
	outside := make(map[*graph.Node]bool, len(g.Outputs)) // what a stretch must leave behind
	for _, n := range g.Outputs {
		outside[n] = true
	}
	at := 0
	for i, r := range found {
		if err := w.stretch(g, at, r.start, outside, value); err != nil {
			return err
		}
		if err := w.calls(g, fmt.Sprintf("block%d", i), r, value); err != nil {
			return err
		}
		at = r.end()
	}
	return w.stretch(g, at, len(g.Nodes), outside, value)
}

// nodes writes the nodes of g, lowered.
func (w *Writer) nodes(g *graph.Graph, value map[*graph.Node]Value) error {
	low, err := lower(g, w.options)
	if err != nil {
		return err
	}
	local := make(map[*graph.Node]Value, len(low.Inputs)+len(low.Nodes))
	for i, n := range low.Inputs {
		local[n] = value[g.Inputs[i]]
	}
	rounds, skip := roundings(low)
	for _, n := range low.Nodes {
		if skip[n] {
			continue
		}
		if x := rounds[n]; x != nil {
			local[n] = w.same("stablehlo.round_nearest_even", local[x])
			continue
		}
		in := make([]Value, len(n.In))
		for i, c := range n.In {
			in[i] = local[c]
		}
		v, err := w.node(n, in)
		if err != nil {
			return fmt.Errorf("stablehlo: graph %s: %s: %w", g.Name, n.Op, err)
		}
		if !v.Type.Equal(n.Type) {
			return fmt.Errorf("stablehlo: graph %s: %s was written as %s, expected %s", g.Name, n.Op, v.Type, n.Type)
		}
		local[n] = v
	}
	for i, n := range g.Outputs {
		value[n] = local[low.Outputs[i]]
	}
	return nil
}

// part makes a graph of some nodes of g: params become its inputs, and outs are its outputs.
func part(g *graph.Graph, nodes, params, outs []*graph.Node) (*graph.Graph, error) {
	copies := make(map[*graph.Node]*graph.Node, len(nodes)+len(params))
	inputs := make([]*graph.Node, len(params))
	for i, p := range params {
		inputs[i] = graph.NewInput(i, p.Type)
		copies[p] = inputs[i]
	}
	for _, n := range nodes {
		in := make([]*graph.Node, len(n.In))
		for i, c := range n.In {
			in[i] = copies[c]
		}
		copies[n] = &graph.Node{Op: n.Op, In: in, Attr: n.Attr, Type: n.Type}
	}
	outputs := make([]*graph.Node, len(outs))
	for i, n := range outs {
		outputs[i] = copies[n]
	}
	return graph.New(g.Name, inputs, outputs)
}

// stretch writes the nodes from lo to hi, which repeat nothing.
func (w *Writer) stretch(g *graph.Graph, lo, hi int, outside map[*graph.Node]bool, value map[*graph.Node]Value) error {
	if lo == hi {
		return nil
	}
	nodes := g.Nodes[lo:hi]
	inside := make(map[*graph.Node]bool, len(nodes))
	for _, n := range nodes {
		inside[n] = true
	}
	var params, outs []*graph.Node
	seen := map[*graph.Node]bool{}
	for _, n := range nodes {
		for _, c := range n.In {
			if !inside[c] && !seen[c] {
				seen[c] = true
				params = append(params, c)
			}
		}
	}
	later := map[*graph.Node]bool{}
	for _, n := range g.Nodes[hi:] {
		for _, c := range n.In {
			later[c] = true
		}
	}
	for _, n := range nodes {
		if outside[n] || later[n] {
			outs = append(outs, n)
		}
	}
	sub, err := part(g, nodes, params, outs)
	if err != nil {
		return err
	}
	local := make(map[*graph.Node]Value, len(params)+len(outs))
	for i, p := range params {
		local[sub.Inputs[i]] = value[p]
	}
	if err := w.nodes(sub, local); err != nil {
		return err
	}
	for i, n := range outs {
		value[n] = local[sub.Outputs[i]]
	}
	return nil
}

// calls writes the function of a repeat and a call for each occurrence.
func (w *Writer) calls(g *graph.Graph, name string, r repeat, value map[*graph.Node]Value) error {
	nodes := func(k int) []*graph.Node { return g.Nodes[r.start+k*r.period:][:r.period] }
	text, types, err := w.block(g, name, r, nodes(0))
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		w.private = append(w.private, line)
	}
	for k := range r.count {
		args := make([]Value, len(r.params[k]))
		for i, p := range r.params[k] {
			args[i] = value[p]
		}
		for i, v := range w.call(name, types, args) {
			value[nodes(k)[r.outs[i]]] = v
		}
	}
	return nil
}

// block writes a repeat's nodes as a function, and returns its result types.
func (w *Writer) block(g *graph.Graph, name string, r repeat, nodes []*graph.Node) (string, []graph.Type, error) {
	// The operands from outside may be one value here and several elsewhere, so each parameter gets a node of its own.
	params := make([]*graph.Node, len(r.params[0]))
	for i, p := range r.params[0] {
		params[i] = graph.NewInput(i, p.Type)
	}
	ops := make([]*graph.Node, len(nodes))
	copies := make(map[*graph.Node]*graph.Node, len(nodes))
	for j, n := range nodes {
		in := make([]*graph.Node, len(n.In))
		for o, c := range n.In {
			in[o] = copies[c]
		}
		ops[j] = &graph.Node{Op: n.Op, In: in, Attr: n.Attr, Type: n.Type}
		copies[n] = ops[j]
	}
	for _, u := range r.uses {
		ops[u.offset].In[u.operand] = params[u.param]
	}
	outs := make([]*graph.Node, len(r.outs))
	for i, j := range r.outs {
		outs[i] = ops[j]
	}
	sub, err := graph.New(g.Name, params, outs)
	if err != nil {
		return "", nil, err
	}

	caller := w.function
	defer func() { w.function = caller }()
	w.function = &function{indent: "    "}
	local := make(map[*graph.Node]Value, len(params)+len(outs))
	heads := make([]string, len(params))
	for i, p := range params {
		local[p] = Value{fmt.Sprintf("%%arg%d", i), p.Type}
		heads[i] = local[p].Name + ": " + typeText(p.Type)
	}
	if err := w.nodes(sub, local); err != nil {
		return "", nil, err
	}
	names, texts, types := make([]string, len(outs)), make([]string, len(outs)), make([]graph.Type, len(outs))
	for i, n := range outs {
		names[i], texts[i], types[i] = local[n].Name, typeText(n.Type), n.Type
	}
	text := fmt.Sprintf("  func.func private @%s(%s)%s {\n%s%s  }\n", name, strings.Join(heads, ", "), results(texts), w.text.String(), returns(names, texts, "    "))
	return text, types, nil
}

// call writes a call of a function with any number of results.
func (w *Writer) call(name string, types []graph.Type, args []Value) []Value {
	names, operands := join(args...)
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = typeText(t)
	}
	result := strings.TrimPrefix(results(texts), " -> ")
	if len(types) == 1 {
		return []Value{w.Op(types[0], "call @%s(%s) : (%s) -> %s", name, names, operands, result)}
	}
	v := fmt.Sprintf("%%%d", w.next)
	w.next++
	fmt.Fprintf(&w.text, "%s%s:%d = call @%s(%s) : (%s) -> %s\n", w.indent, v, len(types), name, names, operands, result)
	values := make([]Value, len(types))
	for i, t := range types {
		values[i] = Value{fmt.Sprintf("%s#%d", v, i), t}
	}
	return values
}
