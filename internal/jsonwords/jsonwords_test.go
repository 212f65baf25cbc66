package jsonwords

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
)

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                           "is an array, expected an object",
		`"x"`:                          "is a string, expected an object",
		`1`:                            "is a number, expected an object",
		`false`:                        "is true or false, expected an object",
		`{"count": "x"}`:               `key "count" holds a string, expected a whole number`,
		`{"count": 1.5}`:               `key "count" holds 1.5, expected a whole number`,
		`{"count": true}`:              `key "count" holds true or false, expected a whole number`,
		`{"size": [1]}`:                `key "size" holds an array, expected a number`,
		`{"flag": {}}`:                 `key "flag" holds an object, expected true or false`,
		`{"text": 1}`:                  `key "text" holds a number, expected a string`,
		`{"list": 1}`:                  `key "list" holds a number, expected an array`,
		`{"list": ["x", 1]}`:           `key "list" holds a number, expected a string`,
		`{"map": "x"}`:                 `key "map" holds a string, expected an object`,
		"{\n\"count\":}":               "line 2 is not JSON: invalid character '}' looking for beginning of value",
		"{\"count\": 1,\n\"size\": 2,": "line 2 is not JSON: unexpected end of JSON input",
		`{"count": null}`:              "",
	} {
		var v struct {
			Text  string             `json:"text"`
			Count *int               `json:"count"`
			Size  float64            `json:"size"`
			Flag  bool               `json:"flag"`
			List  []string           `json:"list"`
			Map   map[string]float32 `json:"map"`
		}
		got := ""
		if err := Explain([]byte(text), json.Unmarshal([]byte(text), &v)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if err := Explain(nil, io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
