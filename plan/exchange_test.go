package plan

import (
	"math"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/hlo"
	"github.com/gesso-go/gesso/backend/pjrt/mosaic"
)

func TestExchange(t *testing.T) {
	for _, c := range []struct {
		name  string
		chips int64
		links int
		cost  map[string]int64
		want  float64 // bytes sent by a device
	}{
		{"v6e:1x1", 1, 1, nil, 0},
		{"v6e:2x2", 4, 2, map[string]int64{"all-reduce": 4000}, 6000},
		{"v6e:2x4", 8, 3, map[string]int64{"all-gather": 8000, "all-to-all": 800}, 7700},
		{"v5p:2x2x1", 4, 2, map[string]int64{"reduce-scatter": 1000}, 3000},
		{"v5p:4x4x4", 64, 6, map[string]int64{"collective-permute": 123}, 123},
	} {
		_, chip, err := mosaic.ParseTopology(c.name)
		if err != nil {
			t.Fatal(err)
		}
		target := &Target{Name: c.name, Chip: chip}
		if n := target.links(); n != c.links {
			t.Errorf("%s: %d links, want %d", c.name, n, c.links)
		}
		results := int64(0)
		for _, n := range c.cost {
			results += n
		}
		got, seconds := target.exchange(&hlo.Cost{Collectives: c.cost}, c.chips)
		if want := c.want / (float64(c.links) * chip.Link); got != results || math.Abs(seconds-want) > 1e-12*want {
			t.Errorf("%s: %d bytes, %g s, want %d and %g", c.name, got, seconds, results, want)
		}
	}
}
