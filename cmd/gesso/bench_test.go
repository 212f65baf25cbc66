package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/imageio"
)

func TestBenchStepPrintsAResult(t *testing.T) {
	args := []string{"bench", "step", "--layers", "0,0", "--height", "16", "--width", "16", "--seconds", "0", "--mode", "compiled"}
	profile := filepath.Join(t.TempDir(), "cpu.pprof")
	code, stdout, stderr := command(t, nil, append(args, "--json", "--dtype", "f32", "--profile", profile)...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	for key, want := range map[string]any{"arch": "flux1", "layers": "0+0", "dtype": "f32", "mode": "compiled", "programs": 1.0, "tokens": 513.0} {
		if r[key] != want {
			t.Errorf("%s is %v, want %v", key, r[key], want)
		}
	}
	for _, key := range []string{"seconds", "gflop", "gflops", "peak_gflops", "percent_of_peak"} {
		if v, ok := r[key].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v, want a positive number", key, r[key])
		}
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("no profile was written: %v", err)
	}
	if code, stdout, stderr = command(t, nil, args...); code != exitOK || !strings.Contains(stdout, "s/step") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestBenchMistakes(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bench step --arch vgg", "unknown"},
		{"bench step --layers 1", "2 kinds of blocks"},
		{"bench step --dtype i8", "expected f32, bf16 or f16"},
		{"bench step 3", "takes flags only"},
		{"bench run", "takes a command"},
		{"bench step --quantize int4", "not supported (known: int8)"},
		{"bench quantize --dtype i8", "expected f32, bf16 or f16"},
		{"bench kernel --match (", "--match"},
		{"bench kernel --match nothing", "no operation"},
		{"bench kernel --dtype i8", "expected f32, bf16 or f16"},
	} {
		if code, _, stderr := command(t, nil, strings.Fields(c.args)...); code == exitOK || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %q; want %q", c.args, code, stderr, c.want)
		}
	}
}

func TestBenchStartOnce(t *testing.T) {
	code, stdout, stderr := command(t, nil, "bench", "start", "--once")
	if code != exitOK || stdout != ready+"\n" {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestBenchKernel(t *testing.T) {
	args := []string{"bench", "kernel", "--match", "^attention 12×", "--dtype", "bf16", "--seconds", "0.001"}
	code, stdout, stderr := command(t, nil, append(args, "--json")...)
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil || r["op"] != "attention" || r["dtype"] != "bf16" {
		t.Errorf("exit %d, %v, stdout %q, stderr %q", code, err, stdout, stderr)
	}
	if code, stdout, stderr = command(t, nil, args...); code != exitOK || !strings.Contains(stdout, "attention 12×77×64") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// Programs that are compared do a step for each line they are given.
func TestBenchStepTakesTurns(t *testing.T) {
	code, stdout, stderr := command(t, nil, "bench", "step", "--arch", "clip-l", "--layers", "1", "--json", "--turns")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != exitOK || len(lines) != 3 || lines[0] != ready || !strings.Contains(lines[2], `"steps":1,`) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestBenchDispatch(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "t.json")
	code, stdout, stderr := command(t, nil, "bench", "dispatch", "--ops", "20", "--trace", trace, "--json")
	var r struct {
		Strict       float64 `json:"strict_us"`
		Asynchronous struct {
			Operations int `json:"operations"`
		} `json:"asynchronous"`
	}
	if code != exitOK || json.Unmarshal([]byte(stdout), &r) != nil || r.Strict <= 0 || r.Asynchronous.Operations != 20 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if b, err := os.ReadFile(trace); err != nil || !strings.Contains(string(b), `"dot_general"`) {
		t.Errorf("the trace: %.300s, %v", b, err)
	}
	if code, _, _ := command(t, nil, "bench", "dispatch", "--device", "abacus"); code != exitUsage {
		t.Errorf("an unknown device: exit %d", code)
	}
}

func TestBenchQuantize(t *testing.T) {
	code, stdout, stderr := command(t, nil, "bench", "quantize", "--steps", "2", "--markdown", "red apple")
	if code != exitOK || !strings.Contains(stdout, "| transformer.call1.out |") || !strings.Contains(stdout, "dB PSNR on average") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// A quantised model makes another picture than the plain one, in every mode the same.
func TestGenerateQuantized(t *testing.T) {
	pictures := map[string]string{}
	for name, args := range map[string][]string{
		"plain": {"--mode", "compiled"}, "strict": {"--quantize", "int8"}, "compiled": {"--quantize", "int8", "--mode", "compiled"},
	} {
		png := filepath.Join(t.TempDir(), "a.png")
		args = append([]string{"generate", "--seed", "1", "--steps", "2", "-o", png, "red apple"}, args...)
		if code, _, stderr := command(t, nil, args...); code != exitOK {
			t.Fatalf("%s: exit %d, %s", name, code, stderr)
		}
		img, err := imageio.ReadFile(png, imageio.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		pictures[name] = fmt.Sprint(img)
	}
	if pictures["strict"] != pictures["compiled"] {
		t.Error("strict and compiled mode make different pictures")
	}
	if pictures["plain"] == pictures["strict"] {
		t.Error("int8 changes nothing")
	}
}
