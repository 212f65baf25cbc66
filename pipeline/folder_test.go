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
		`[]`: "not a JSON object (array)", `"x"`: "not a JSON object (string)", `{"n": "x"}`: `key "n" holds a string, expected int`,
		"{\n\"n\":}": "line 2 is not JSON",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v struct {
			N int `json:"n"`
		}
		if err := ReadJSON(path, &v); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
