package main

import (
	"errors"
	"os"
	"os/exec"
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

// TestRace: programs take turns, the order alternates, and one that fails, at once or in a later step, is reported with its last
// words and doesn't keep the others.
func TestRace(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	program := func(name, step string) *contestant {
		script := `echo ready; while read line; do echo ` + name + ` >> "$0"; ` + step + `; done; echo '{"peak_resident_bytes": 5, "version": "v1"}'`
		return &contestant{name: name, cmd: exec.Command(sh, "-c", script, log)}
	}
	a, b := program("a", "echo 0.5"), program("b", "echo 0.25")
	breaks := program("c", `test -e "$0.again" && { echo "out of memory" >&2; exit 9; }; touch "$0.again"; echo 1`)
	absent := &contestant{name: "d", cmd: exec.Command(sh, "-c", "echo no module named torch >&2; exit 3")}
	s := &session{rounds: 3}
	s.race(t.Context(), "work", []*contestant{absent, a, breaks, b})
	order, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(strings.Fields(string(order)), ""), "acb"+"bca"+"ab"; got != want {
		t.Errorf("steps were done in the order %s, want %s", got, want)
	}
	if a.m.err != nil || a.m.Seconds != 0.5 || len(a.m.times) != 3 || a.m.Peak != 5 || b.m.err != nil || b.m.Seconds != 0.25 || s.version != "v1" {
		t.Errorf("%+v, %+v, version %q", a.m, b.m, s.version)
	}
	for c, want := range map[*contestant]string{breaks: "failed: exit status 9: out of memory", absent: "failed: exit status 3: no module named torch"} {
		if got := c.seconds(); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}
