package stablehlo

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/graph"
)

// Whole, in Shards, says that every device has all of an input.
const Whole = -1

// Shards says how a program is divided among devices that run it together: device d of n has part d of each divided input.
// Every device has all of every result.
type Shards struct {
	Devices int
	Inputs  []int // the axis along which each input is divided into equal parts, or Whole
}

// mesh names the devices of a divided program, in one row.
const mesh = "mesh"

// module returns the attributes of the module.
func (s *Shards) module() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(" attributes {mhlo.num_partitions = %d : i32, mhlo.num_replicas = 1 : i32}", s.Devices)
}

// declaration is the line of the mesh.
func (s *Shards) declaration() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("  sdy.mesh @%s = <[\"x\"=%d]>\n", mesh, s.Devices)
}

// sharding is the attribute of a value of some rank.
func sharding(rank, axis int) string {
	axes := make([]string, rank)
	for i := range axes {
		axes[i] = "{}"
		if i == axis {
			axes[i] = `{"x"}`
		}
	}
	return fmt.Sprintf("sdy.sharding = #sdy.sharding<@%s, [%s]>", mesh, strings.Join(axes, ", "))
}

// add adds each parameter's sharding to its list.
func (s *Shards) add(g *graph.Graph, lists [][]string) error {
	if s == nil {
		return nil
	}
	if s.Devices < 1 || len(s.Inputs) != len(g.Inputs) {
		return fmt.Errorf("stablehlo: graph %s: %d of its %d inputs are divided among %d devices", g.Name, len(s.Inputs), len(g.Inputs), s.Devices)
	}
	for i, axis := range s.Inputs {
		shape := g.Inputs[i].Shape
		if axis != Whole && (axis < 0 || axis >= len(shape) || shape[axis]%s.Devices != 0) {
			return fmt.Errorf("stablehlo: graph %s: input %d, %s, can't be divided among %d devices along axis %d", g.Name, i, g.Inputs[i].Type, s.Devices, axis)
		}
		lists[i] = append(lists[i], sharding(len(shape), axis))
	}
	return nil
}

// results writes @main's result types: whole on every device.
func (s *Shards) results(outs []*graph.Node, types []string) string {
	if s == nil || len(types) == 0 {
		return results(types)
	}
	with := make([]string, len(types))
	for i, n := range outs {
		with[i] = fmt.Sprintf("%s {%s}", types[i], sharding(len(n.Shape), Whole))
	}
	return " -> (" + strings.Join(with, ", ") + ")"
}
