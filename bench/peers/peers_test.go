package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A section's text is replaced between its markers, and nothing else changes.
func TestReplaceSection(t *testing.T) {
	begin, end := marks("steps")
	doc := "a\n" + begin + "\nold\n" + end + "\nb\n"
	path := filepath.Join(t.TempDir(), "d.md")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceSection(path, "steps", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := strings.Replace(doc, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("%v, got %q, want %q", err, got, want)
	}
	if err := replaceSection(path, "hub", "x"); err == nil || !strings.Contains(err.Error(), "section hub") {
		t.Errorf("a missing section: error %v", err)
	}
}

// Every section has its place in the document.
func TestDocumentHasEverySection(t *testing.T) {
	b, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		if _, err := splice(string(b), name, ""); err != nil {
			t.Error(err)
		}
	}
}

// The ratio is the fastest peer's that did not fail.
func TestRatio(t *testing.T) {
	c := func(seconds float64, err error) *contestant {
		return &contestant{m: measured{Seconds: seconds, err: err}}
	}
	failed := errors.New("killed | by a signal")
	if got := ratio(c(2, nil), c(3, nil), c(5, nil)); got != "**1.50**" {
		t.Errorf("ratio %s", got)
	}
	if got := ratio(c(2, nil), c(3, failed), c(5, nil)); got != "**2.50**" {
		t.Errorf("ratio %s", got)
	}
	if got := ratio(c(2, nil), c(3, failed)); got != "" {
		t.Errorf("ratio %s", got)
	}
	if got := c(0, failed).seconds(); got != "failed: killed / by a signal" {
		t.Errorf("%q", got)
	}
}
