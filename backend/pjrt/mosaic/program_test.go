package mosaic

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
)

// Programs call the kernels: attention, norm and rotation of queries and of keys, norm and modulation. Without kernels,
// attention is a loop over blocks, and nothing has the size of all scores.
func TestProgram(t *testing.T) {
	g, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chips {
		text, err := stablehlo.Text(g, Options(c, true))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int{"gesso_attention": 1, "gesso_norm_rope": 2, "gesso_norm_modulate": 1} {
			if n := strings.Count(text, `kernel_name = "`+name+`"`); n != want {
				t.Errorf("%s: %d calls of %s, expected %d", c.Generation, n, name, want)
			}
		}
		if text, err = stablehlo.Text(g, Options(c, false)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "custom_call") || strings.Count(text, "stablehlo.while") != 2 {
			t.Errorf("%s without kernels:\n%s", c.Generation, text)
		}
	}
}

// Blocks of scores fit the chip's own memory, whatever the sizes.
func TestGroups(t *testing.T) {
	for _, s := range [][3]int{{24, 4608, 4608}, {24, 16896, 16896}, {1, 16384, 16384}, {1, 65536, 65536}, {48, 4608, 512}, {5, 77, 77}, {1, 1, 1}} {
		g, c := groupOf(s[0], s[1], s[2])
		if s[0]%g != 0 || c < 1 || c > s[1] || g*c*s[2]*4 > scoreBytes {
			t.Errorf("%v: groups of %d, blocks of %d", s, g, c)
		}
	}
}
