package plan

import "testing"

// Two models of 100 and 60, which need 10 and 20 beside; programs of 30 and 8 with 10 and 20.
func TestPlacements(t *testing.T) {
	n := needs{[]part{{100, 10}, {60, 20}}, []part{{30, 10}, {8, 20}}, 1}
	for p, want := range map[Placement][2]int64{
		{}:                        {160, 180},
		{TP: 1}:                   {160, 180},
		{Offload: ByModel}:        {100, 110},
		{Offload: ByBlock}:        {60, 70},
		{TP: 4}:                   {40, 60},
		{Offload: ByModel, TP: 4}: {25, 35},
		{Offload: ByBlock, TP: 4}: {15, 25},
	} {
		if w, need := n.of(p); w != want[0] || need != want[1] {
			t.Errorf("%s: weights %d, need %d, expected %v", p, w, need, want)
		}
	}
	for memory, want := range map[int64]string{
		180: "", 179: "offload model by model", 109: "tensor parallelism over 2", 99: "tensor parallelism over 2, offload model by model",
		59: "tensor parallelism over 4, offload model by model", 26: "tensor parallelism over 4, offload block by block",
		1: "no placement fits: a smaller picture, or a topology with more memory",
	} {
		r := &Report{Memory: memory, Devices: 4}
		r.place(Placement{}, n)
		if r.Change != want || r.Fits != (want == "") || r.Need != 180 {
			t.Errorf("%d bytes: %q, fits %v, expected %q", memory, r.Change, r.Fits, want)
		}
	}
	r := &Report{Memory: 110, Devices: 1}
	if r.place(Placement{Offload: ByModel}, n); !r.Fits || r.Need != 110 || len(r.Choices) != 3 || r.Choices[0].Estimate || !r.Choices[1].Estimate {
		t.Errorf("%+v", r)
	}
	// Figures of programs for two devices are taken as they are, and judge no other number.
	n.devices = 2
	r = &Report{Memory: 110, Devices: 4}
	if r.place(Placement{TP: 2}, n); r.Fits || r.Need != 180 || r.Change != "tensor parallelism over 2, offload model by model" || len(r.Choices) != 3 {
		t.Errorf("%+v", r)
	}
	if (Placement{Offload: "disk"}).Check() == nil || (Placement{TP: -1}).Check() == nil || (Placement{ByBlock, 2}).Check() != nil {
		t.Error("Check")
	}
}
