package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong in a file is said in its own words, not in Go's.
func TestReadJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for text, want := range map[string]string{
		`[]`: "is an array, expected an object", `"x"`: "is a string, expected an object", `{"n": "x"}`: `key "n" holds a string, expected a whole number`,
		"{\n\"n\":}": "line 2 is not JSON",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v struct {
			N int `json:"n"`
		}
		if err := ReadJSON(path, &v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
