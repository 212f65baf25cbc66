package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/plan"
)

// A repository is planned for from its configurations alone, by a compiler without devices. What doesn't compile doesn't
// hinder the rest, and compile fails with the program's name.
func TestPlan(t *testing.T) {
	h, _, env := fakeHub(t)
	t.Setenv("GESSO_PLUGIN_TPU", plugintest.Fake(t, plugintest.NoDevices))
	flags := []string{"--model", "acme/tiny", "--device", "tpu:v6e:1x1", "--height", "32", "--width", "48", "--steps", "3", "--no-kernels"}
	env = with(env, "GESSO_CACHE", t.TempDir())
	code, stdout, stderr := command(t, env, append([]string{"plan", "--json", "--offload", "model"}, flags...)...)
	var reports []plan.Report
	if err := json.Unmarshal([]byte(stdout), &reports); code != exitOK || err != nil || len(reports) != 1 {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if n := len(h.Requests(hubtest.Xorb, hubtest.Reconstruction)); n > 0 {
		t.Errorf("weights were downloaded: %d requests", n)
	}
	r := reports[0]
	if r.Steps != 3 || r.Height != 32 || r.Placement.Offload != plan.ByModel || len(r.Programs) == 0 || len(r.Components) == 0 || len(r.Choices) != 3 || r.StepSeconds <= 0 {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Programs {
		if p.Arguments != 3e6 || p.Alias != 4e5 || p.Peak != 5.6e6 || p.Runs == 0 {
			t.Errorf("%+v", p)
		}
	}
	code, stdout, stderr = command(t, env, append([]string{"plan"}, flags...)...)
	for _, text := range []string{"v6e:1x1", "transformer", "in place", "400.0 kB", "all weights on one device", "offload block by block", "(estimate; generate has no such placement yet)", "no device has run it"} {
		if code != exitOK || !strings.Contains(stdout, text) {
			t.Errorf("exit %d, no %q: %s%s", code, text, stdout, stderr)
		}
	}
	if strings.Contains(stderr, " s\n") || !strings.Contains(stderr, "from the cache") {
		t.Errorf("the second time: %s", stderr)
	}
	bundle := t.TempDir()
	if code, stdout, stderr = command(t, env, append([]string{"compile", "--output", bundle}, flags...)...); code != exitOK || !strings.Contains(stdout, "0 from the cache") {
		t.Errorf("compile: exit %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr = command(t, env, "cache", "add", bundle); code != exitOK {
		t.Errorf("cache add: exit %d: %s", code, stderr)
	}
	if code, _, stderr = command(t, env, append([]string{"compile", "--output", "plan_test.go"}, flags...)...); code != exitFailed || !strings.Contains(stderr, "--output: plan_test.go is not a folder") {
		t.Errorf("compile into a file: exit %d: %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr = command(t, with(env, "GESSO_CACHE", file), append([]string{"compile"}, flags...)...); code != exitFailed || stdout != "" || !strings.Contains(stderr, "cache: folder "+file) {
		t.Errorf("compile without a cache: exit %d: %s%s", code, stdout, stderr)
	}
	if full := t.TempDir(); mountTiny(full) == nil {
		defer unmount(full)
		_ = os.WriteFile(filepath.Join(full, "x"), make([]byte, 1<<20), 0o600)
		if code, stdout, stderr = command(t, env, append([]string{"compile", "--output", full}, flags...)...); code != exitFailed || stdout != "" || !strings.Contains(stderr, "no space left") {
			t.Errorf("compile to a full disk: exit %d: %s%s", code, stdout, stderr)
		}
		if code, stdout, stderr = command(t, with(env, "GESSO_CACHE", full), append([]string{"compile"}, flags...)...); code != exitFailed || stdout != "" || !strings.Contains(stderr, "no space left") {
			t.Errorf("compile into a full cache: exit %d: %s%s", code, stdout, stderr)
		}
	}

	t.Setenv("GESSO_PLUGIN_TPU", plugintest.Fake(t, plugintest.NoDevices, plugintest.CrashOn("stablehlo")))
	code, _, stderr = command(t, with(env, "GESSO_CACHE", t.TempDir()), append([]string{"compile"}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "the compiler crashed") || !strings.Contains(stderr, "compile text_encoder") {
		t.Errorf("a compiler that crashes: exit %d: %s", code, stderr)
	}
}

func TestPlanMistakes(t *testing.T) {
	for text, args := range map[string][]string{
		"--model is missing":        {},
		"--device":                  {"--model", checkpoint, "--device", "tpu:v9z:1x1"},
		"--dtype i8":                {"--model", checkpoint, "--dtype", "i8"},
		"--mode strict":             {"--model", checkpoint, "--mode", "strict"},
		"--height -1":               {"--model", checkpoint, "--height", "-1"},
		"offload disk":              {"--model", checkpoint, "--offload", "disk"},
		"tensor parallelism over -": {"--model", checkpoint, "--tp", "-2"},
	} {
		if code, _, stderr := command(t, nil, append([]string{"plan"}, args...)...); code != exitUsage || !strings.Contains(stderr, text) {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	t.Setenv("GESSO_PLUGIN_TPU", plugintest.Fake(t, plugintest.NoDevices))
	code, _, stderr := command(t, nil, "plan", "--model", checkpoint, "--height", "32", "--width", "32", "--tp", "2", "--no-kernels")
	if code != exitFailed || !strings.Contains(stderr, "tensor parallelism over 2: v6e:1x1 has 1") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
