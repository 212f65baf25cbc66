package plan

import (
	"fmt"
	"slices"
	"strings"
)

// The ways of Placement.Offload.
const (
	Resident  = ""      // all weights stay on the device
	ByModel   = "model" // one model at a time is on the device
	ByBlock   = "block" // one program's weights at a time, and the next one's on their way
	offloaded = ByModel + " or " + ByBlock
)

// Placement says where weights are. Only the zero value is what generate does; others are estimates from the figures of
// the programs as they are.
type Placement struct {
	Offload string `json:"offload,omitempty"`
	TP      int    `json:"tensor_parallel,omitempty"` // devices that share each weight; 0 and 1 mean one
}

// Check refuses what can't be.
func (p Placement) Check() error {
	if !slices.Contains([]string{Resident, ByModel, ByBlock}, p.Offload) {
		return fmt.Errorf("offload %s: expected %s", p.Offload, offloaded)
	}
	if p.TP < 0 {
		return fmt.Errorf("tensor parallelism over %d devices", p.TP)
	}
	return nil
}

func (p Placement) ways() int64 { return int64(max(1, p.TP)) }

// Estimate reports whether no generation has run so: package pipeline places weights in no other way than whole.
func (p Placement) Estimate() bool { return p.Offload != Resident || p.TP > 1 }

// String names the placement in words.
func (p Placement) String() string {
	var words []string
	if p.TP > 1 {
		words = append(words, fmt.Sprintf("tensor parallelism over %d", p.TP))
	}
	if p.Offload != Resident {
		words = append(words, fmt.Sprintf("offload %s by %s", p.Offload, p.Offload))
	}
	if len(words) == 0 {
		return "all weights on one device"
	}
	return strings.Join(words, ", ")
}

// Choice is a placement and what it needs of each device.
type Choice struct {
	Placement
	Change   string `json:"change"`        // in words
	Weights  int64  `json:"weights_bytes"` // of one device, at a time
	Need     int64  `json:"need_bytes"`    // with the largest program's other needs
	Fits     bool   `json:"fits"`
	Estimate bool   `json:"estimate"` // generate can't place so
}

// part is a model or a program: its weights, and what it needs beside them.
type part struct{ weights, working int64 }

// needs are those of one of several devices that share each weight.
type needs struct {
	models, programs []part
	devices          int64
}

// of returns the bytes of a device. Where more devices than n's share the weights, only these become smaller: that
// activations are divided too is not counted on.
func (n needs) of(p Placement) (weights, need int64) {
	ways := p.ways() / n.devices
	share := func(w int64) int64 { return (w + ways - 1) / ways }
	switch p.Offload {
	case ByModel:
		for _, m := range n.models {
			weights, need = max(weights, share(m.weights)), max(need, share(m.weights)+m.working)
		}
	case ByBlock:
		for _, b := range n.programs {
			weights, need = max(weights, share(2*b.weights)), max(need, share(2*b.weights)+b.working)
		}
	default:
		var widest int64
		for _, m := range n.models {
			weights += share(m.weights)
			widest = max(widest, m.working)
		}
		need = weights + widest
	}
	return weights, need
}

// place judges the placement that was asked for, and all others, or those with as many devices to a weight if programs were
// compiled for several. They come in the order in which they are worth trying:
// what costs the least time first.
func (r *Report) place(asked Placement, n needs) {
	choose := func(p Placement) *Choice {
		w, need := n.of(p)
		return &Choice{Placement: p, Change: p.String(), Weights: w, Need: need, Fits: need <= r.Memory, Estimate: p.Estimate()}
	}
	all := []Placement{{}, {Offload: ByModel}}
	for tp := 2; tp <= r.Devices; tp *= 2 {
		all = append(all, Placement{TP: tp}, Placement{ByModel, tp})
	}
	all = append(all, Placement{Offload: ByBlock})
	for tp := 2; tp <= r.Devices; tp *= 2 {
		all = append(all, Placement{ByBlock, tp})
	}
	if n.devices > 1 {
		all = slices.DeleteFunc(all, func(p Placement) bool { return p.ways() != n.devices })
	}
	for _, p := range all {
		r.Choices = append(r.Choices, *choose(p))
	}
	c := choose(asked)
	r.Placement, r.Need, r.Fits = asked, c.Need, c.Fits
	if r.Fits {
		return
	}
	r.Change = "no placement fits: a smaller picture, or a topology with more memory"
	if i := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Fits }); i >= 0 {
		r.Change = r.Choices[i].Change
	}
}
