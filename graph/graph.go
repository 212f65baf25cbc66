package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/tensor"
)

// Type is the static type of a value.
type Type struct {
	DType tensor.DType
	Shape tensor.Shape
}

// Equal reports whether both types are the same.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && t.Shape.Equal(u.Shape) }

// Bytes returns the size of a dense value.
func (t Type) Bytes() int { return t.Shape.Size() * t.DType.Size() }

// String returns for instance "bf16[1 4096 64]".
func (t Type) String() string { return t.DType.String() + t.Shape.String() }

// AppendKey appends an encoding that tells any two different types apart.
func (t Type) AppendKey(b []byte) []byte { return appendInts(append(b, byte(t.DType)), t.Shape) }

// Node is one operation. A node never changes after Make has returned it.
type Node struct {
	Op   Op
	In   []*Node
	Attr Attr // nil where the operation needs none
	Type
}

// NewInput returns the input number index of a graph.
func NewInput(index int, t Type) *Node {
	return &Node{Op: Input, Attr: InputAttr{index}, Type: t}
}

// NewConstant returns a node that holds a.
func NewConstant(a *tensor.Array) *Node {
	return &Node{Op: Constant, Attr: ConstantAttr{a}, Type: Type{a.DType, a.Shape}}
}

// Make returns a node after inferring its type. The error names the operation and the operand types.
func Make(op Op, attr Attr, in ...*Node) (*Node, error) {
	types := make([]Type, len(in))
	for i, n := range in {
		types[i] = n.Type
	}
	t, err := Infer(op, attr, types)
	if err != nil {
		return nil, err
	}
	return &Node{Op: op, In: in, Attr: attr, Type: t}, nil
}

// Graph is a closed program: every node is reached from the outputs and depends on the inputs only.
type Graph struct {
	Name    string  // for people: the traced function or operation
	Inputs  []*Node // Input nodes numbered 0, 1, …; an input may be unused
	Outputs []*Node
	Nodes   []*Node // all nodes but the inputs, each after its operands

	// Donated are the inputs, ascending, that the program takes over: results may lie where they were, and nobody has them
	// after a run.
	Donated []int
}

// New orders the nodes that outputs need and checks that they use the given inputs only.
func New(name string, inputs, outputs []*Node) (*Graph, error) {
	g := &Graph{Name: name, Inputs: inputs, Outputs: outputs}
	seen := make(map[*Node]bool, 64)
	for i, n := range inputs {
		if n.Op != Input || n.Attr.(InputAttr).Index != i {
			return nil, fmt.Errorf("graph %s: input %d is %s", name, i, n.Op)
		}
		seen[n] = true
	}
	// Depth first with an explicit stack: a recorded chain can be tens of thousands of nodes deep.
	type frame struct {
		n    *Node
		next int
	}
	var stack []frame
	for _, out := range outputs {
		if !seen[out] {
			seen[out] = true
			stack = append(stack, frame{out, 0})
		}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.n.Op == Input {
				return nil, fmt.Errorf("graph %s: uses an input that is not among its inputs", name)
			}
			if f.next < len(f.n.In) {
				c := f.n.In[f.next]
				f.next++
				if !seen[c] {
					seen[c] = true
					stack = append(stack, frame{c, 0})
				}
				continue
			}
			g.Nodes = append(g.Nodes, f.n)
			stack = stack[:len(stack)-1]
		}
	}
	return g, nil
}

// AppendKey appends an encoding of structure, types, attributes, constants and donations: equal for two graphs exactly when they
// are the same program, whatever they are called.
func (g *Graph) AppendKey(b []byte) []byte {
	number := make(map[*Node]int, len(g.Inputs)+len(g.Nodes))
	b = appendInt(b, len(g.Inputs))
	for i, n := range g.Inputs {
		number[n] = i
		b = n.Type.AppendKey(b)
	}
	for i, n := range g.Nodes {
		number[n] = len(g.Inputs) + i
		b = AppendOpKey(b, n.Op, n.Attr)
		b = appendInt(b, len(n.In))
		for _, c := range n.In {
			b = appendInt(b, number[c])
		}
	}
	b = appendInt(b, len(g.Outputs))
	for _, n := range g.Outputs {
		b = appendInt(b, number[n])
	}
	for _, i := range g.Donated {
		b = appendInt(b, i)
	}
	return b
}

// AppendOpKey appends the key of one operation and its attribute.
func AppendOpKey(b []byte, op Op, attr Attr) []byte {
	b = append(b, byte(op))
	if attr != nil {
		b = attr.AppendKey(b)
	}
	return b
}

// Fingerprint returns the hexadecimal SHA-256 of the key.
func (g *Graph) Fingerprint() string {
	sum := sha256.Sum256(g.AppendKey(nil))
	return hex.EncodeToString(sum[:])
}

// String lists the program, one operation a line.
func (g *Graph) String() string {
	var b strings.Builder
	name := make(map[*Node]string, len(g.Inputs)+len(g.Nodes))
	fmt.Fprintf(&b, "%s(", g.Name)
	for i, n := range g.Inputs {
		name[n] = fmt.Sprintf("in%d", i)
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", name[n], n.Type)
		if slices.Contains(g.Donated, i) {
			b.WriteString(" donated")
		}
	}
	b.WriteString(")\n")
	for i, n := range g.Nodes {
		name[n] = fmt.Sprintf("v%d", i)
		fmt.Fprintf(&b, "  %s %s = %s", name[n], n.Type, n.Op)
		for _, c := range n.In {
			b.WriteString(" " + name[c])
		}
		if c, ok := n.Attr.(ConstantAttr); ok {
			if c.Value.Shape.Size() == 1 {
				fmt.Fprintf(&b, " %v", c.Value.Float64s()[0])
			}
		} else if n.Attr != nil {
			fmt.Fprintf(&b, " %+v", n.Attr)
		}
		b.WriteByte('\n')
	}
	b.WriteString("  return")
	for _, n := range g.Outputs {
		b.WriteString(" " + name[n])
	}
	b.WriteByte('\n')
	return b.String()
}
