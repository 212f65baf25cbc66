package hf

import (
	"strings"
	"testing"
	"testing/fstest"
)

// What a key holds and should hold is said in JSON's words.
func TestWrongValues(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "want an object, got an array", `{"text": 1}`: "want a string, got a number", `{"list": {}}`: "want an array, got an object", `{"number": "x"}`: "want a whole number, got a string",
		`{"flag": 1}`: "want true or false, got a number",
	} {
		var v struct {
			Text   string   `json:"text"`
			List   []string `json:"list"`
			Number *int     `json:"number"`
			Flag   bool     `json:"flag"`
		}
		_, err := readMembers(fstest.MapFS{"f.json": {Data: []byte(text)}}, "f.json", &v)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
