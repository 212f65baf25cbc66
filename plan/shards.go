package plan

import (
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/placement"
)

// Shards says how tensor parallelism among n devices divides the program, or is nil where nothing is divided.
func (p *Program) Shards(n int) *stablehlo.Shards {
	if n <= 1 {
		return nil
	}
	s := &stablehlo.Shards{Devices: n, Inputs: make([]int, len(p.Params))}
	divided := false
	for i, name := range p.Params {
		s.Inputs[i] = stablehlo.Whole
		if axis := placement.Split(name, p.Graph.Inputs[i].Shape, n); axis != placement.Whole {
			s.Inputs[i], divided = axis, true
		}
	}
	if !divided {
		return nil
	}
	return s
}

// held returns the bytes of parameters that one run takes of a device, divided by s.
func (p *Program) held(s *stablehlo.Shards) int64 {
	if s == nil {
		return p.Weights
	}
	total := int64(0)
	for i, name := range p.Params {
		n := int64(p.Graph.Inputs[i].Type.Bytes())
		switch {
		case name == "":
		case s.Inputs[i] == stablehlo.Whole:
			total += n
		default:
			total += n / int64(s.Devices)
		}
	}
	return total
}

// held returns the bytes of the component's parameters on each of n devices.
func (c *Component) held(n int64) (total int64) {
	for name, t := range c.types {
		bytes := int64(t.Bytes())
		if placement.Split(name, t.Shape, int(n)) != placement.Whole {
			bytes /= n
		}
		total += bytes
	}
	return total
}
