package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// The second process loads what the first has compiled, makes the same picture, and its statistics say so.
func TestProgramsAreKept(t *testing.T) {
	plugin := plugintest.Newest(t)
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	t.Setenv("GESSO_PLUGIN_XLA_CPU", plugin) // the library sees the process's environment
	t.Setenv("GESSO_CACHE", cache)
	env := map[string]string{"GESSO_CACHE": cache}
	type stats struct {
		Compiles   int64            `json:"compiles"`
		DiskHits   int64            `json:"disk_hits"`
		CompilesOf map[string]int64 `json:"compiles_of"`
	}
	generate := func(name string) (s stats, picture string) {
		png, file := filepath.Join(dir, name+".png"), filepath.Join(dir, name+".json")
		args := small("--model", checkpoint, "--device", "xla-cpu", "--mode", "compiled", "--seed", "1", "-o", png, "--stats", file, "a fox")
		if code, _, stderr := command(t, env, args...); code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.ReadFile(png)
		if err != nil {
			t.Fatal(err)
		}
		return s, string(p)
	}
	first, p1 := generate("first")
	second, p2 := generate("second")
	if first.Compiles == 0 || second.Compiles != 0 || second.DiskHits != first.Compiles+first.DiskHits {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if p1 != p2 {
		t.Error("the pictures differ")
	}

	code, stdout, stderr := command(t, env, "cache", "ls")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != exitOK || int64(len(lines)) != first.Compiles || !strings.Contains(stdout, "transformer") || !strings.Contains(stderr, cache) {
		t.Fatalf("cache ls: exit %d, %d lines for %d programs: %s%s", code, len(lines), first.Compiles, stdout, stderr)
	}
	key := strings.Fields(lines[0])[0]
	if code, _, stderr := command(t, env, "cache", "rm", key); code != exitOK || !strings.Contains(stderr, "removed "+key) {
		t.Errorf("cache rm: exit %d: %s", code, stderr)
	}
	if code, _, stderr := command(t, env, "cache", "rm", key); code != exitFailed || !strings.Contains(stderr, "no program with key") {
		t.Errorf("cache rm twice: exit %d: %s", code, stderr)
	}
	if third, _ := generate("third"); third.Compiles != 1 {
		t.Errorf("after removing one: %+v", third)
	}
	if code, _, stderr := command(t, env, "cache", "rm", "--all"); code != exitOK {
		t.Errorf("cache rm --all: exit %d: %s", code, stderr)
	}
	if code, stdout, _ := command(t, env, "cache", "ls", "--json"); code != exitOK || !strings.Contains(stdout, `"programs": []`) {
		t.Errorf("cache ls --json: exit %d: %s", code, stdout)
	}
}

func TestCacheUsage(t *testing.T) {
	for _, args := range [][]string{{"cache", "rm"}, {"cache", "rm", "--all", "abcd"}, {"cache", "ls", "x"}, {"cache", "x"}} {
		if code, _, stderr := command(t, nil, args...); code != exitUsage {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
}
