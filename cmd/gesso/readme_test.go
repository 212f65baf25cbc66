package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command of the READMEs runs. Real checkpoints are replaced by the tiny one, at a small size.
func TestReadmeCommands(t *testing.T) {
	var b []byte
	for _, name := range []string{"../../README.md", "../../demo/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, text...)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tiny := filepath.Join(root, "testdata/golden/checkpoints/flux_schnell")
	t.Chdir(t.TempDir())
	for _, folder := range []string{"testdata", "demo"} {
		if err := os.Symlink(filepath.Join(root, folder), folder); err != nil {
			t.Fatal(err)
		}
	}
	words := regexp.MustCompile(`"[^"]*"|\S+`)
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			rest, ok := strings.CutPrefix(line, "go run ./cmd/gesso ")
			if !ok {
				if rest, ok = strings.CutPrefix(line, "./gesso "); !ok {
					continue // go build, go test
				}
			}
			var args []string
			for _, w := range words.FindAllString(rest, -1) {
				w = strings.Trim(w, `"`)
				if w == "./FLUX.1-schnell" {
					w = tiny
				}
				args = append(args, w)
			}
			if args[0] == "generate" && !strings.Contains(rest, "--height") {
				args = append(args, "--height", "32", "--width", "32", "--max-sequence-length", "16")
			}
			if code, _, stderr := command(t, nil, args...); code != exitOK {
				t.Errorf("%s: exit %d: %s", line, code, stderr)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("only %d commands were found", ran)
	}
}
