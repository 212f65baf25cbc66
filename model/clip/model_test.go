package clip

import "testing"

// The pooled row is that of the first end token, or of the largest id where the end token is the legacy one. Without the
// end token it is the first row, as in transformers, also where the configuration leaves the key out.
func TestPoolRow(t *testing.T) {
	ids := []int64{3, 7, 5, 9, 9, 5}
	for eos, want := range map[int64]int{5: 2, 9: 3, 2: 3, Defaults().EOS: 0} {
		c := Config{EOS: eos}
		if got := c.PoolRow(ids); got != want {
			t.Errorf("end token %d: row %d, want %d", eos, got, want)
		}
	}
}
