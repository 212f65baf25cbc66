package imageio

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Pictures with fewer colour samples than pixels are read as Pillow reads them; see testdata/make_chroma.py. WebP has one
// right result; JPEG leaves the inverse transform to the decoder, which moves a level by a few units.
func TestColourSamplesAreInterpolated(t *testing.T) {
	data, err := os.ReadFile("testdata/chroma.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string][]int
	if err := json.Unmarshal(data, &files); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		m, err := ReadFile("testdata/"+name, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, worst := Pixels(m).Data, 0
		if len(got) != len(want) {
			t.Fatalf("%s: %d levels, want %d", name, len(got), len(want))
		}
		for i := range got {
			worst = max(worst, int(got[i])-want[i], want[i]-int(got[i]))
		}
		allowed := 0
		if strings.HasSuffix(name, ".jpg") {
			allowed = 3
		}
		if worst > allowed {
			t.Errorf("%s: off by up to %d levels, want %d", name, worst, allowed)
		}
	}
}
