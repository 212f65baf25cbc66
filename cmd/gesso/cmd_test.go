package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gesso-go/gesso/weights"
)

const checkpoint = "../../testdata/golden/checkpoints/flux_schnell"

const rgb = "../../testdata/golden/inputs/input_rgb.png"

// command runs one command line in a world of its own.
func command(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	getenv := func(k string) string {
		if k == "GESSO_CACHE" && env[k] == "" {
			return t.TempDir()
		}
		return env[k]
	}
	code = run(t.Context(), &environment{
		stdout: &out, stderr: &errs, stdin: strings.NewReader("a cat"), getenv: getenv, now: time.Now,
	}, args)
	return code, out.String(), errs.String()
}

func small(args ...string) []string {
	return append([]string{"generate", "--height", "32", "--width", "48", "--steps", "2", "--max-sequence-length", "16"}, args...)
}

func TestGenerateWritesAPicture(t *testing.T) {
	dir := t.TempDir()
	png := filepath.Join(dir, "a.png")
	stats, dump := filepath.Join(dir, "s.json"), filepath.Join(dir, "d.safetensors")
	code, stdout, stderr := command(t, nil, small("--model", checkpoint, "--seed", "18446744073709551615", "-o", png, "--stats", stats, "--dump", dump,
		"ein Fuchs, 35 mm, 日本")...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if stdout != png+"\n" {
		t.Errorf("stdout %q, want the path", stdout)
	}
	code, shown, stderr := command(t, nil, "show", png)
	if code != exitOK {
		t.Fatalf("show: exit %d: %s", code, stderr)
	}
	for _, want := range []string{"seed: 18446744073709551615", "prompt: ein Fuchs, 35 mm, 日本", "width: 48", "height: 32", "steps: 2"} {
		if !strings.Contains(shown, want) {
			t.Errorf("show prints no %q:\n%s", want, shown)
		}
	}
	var s map[string]any
	b, err := os.ReadFile(stats)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"compiles", "memory_hits", "weight_bytes_read", "peak_resident_bytes", "step_seconds", "text_encode_seconds"} {
		if _, ok := s[key]; !ok {
			t.Errorf("--stats has no %s", key)
		}
	}
	f, err := weights.OpenFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"text_encoder.call0.input_ids", "prompt_embeds", "pooled_prompt_embeds", "latents.initial", "sigmas", "timesteps",
		"transformer.call1.out", "noise_pred.step_1", "latents.after_step_1", "latents.final", "vae.decode0.in", "vae.decode0.out"} {
		if !f.Has(name) {
			t.Errorf("--dump has no %s", name)
		}
	}
}

// What --stats and --trace are given as a device or a link stays one.
func TestOutputsInPlace(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("real.json", link); err != nil {
		t.Skip(err)
	}
	if code, _, stderr := command(t, nil, small("--model", checkpoint, "-o", filepath.Join(dir, "a.png"), "--stats", link, "--trace", os.DevNull, "x")...); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v, %v", info, err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s is now %v, %v", os.DevNull, info, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "real.json")); err != nil || !json.Valid(b) {
		t.Errorf("%q, %v", b, err)
	}
}

// Outputs that can't be written, or would overwrite one another, are refused before there is a model.
func TestOutputsAreChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"d", "x-1.png"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"l": "d", "n-1.png": "n-0.png"} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-o y.png --stats y.png", exitUsage, "--output y.png and --stats y.png are the same file"},
		{"-o y.png --dump ./d/../y.png", exitUsage, "--output y.png and --dump ./d/../y.png"},
		{"-o d/y.png --trace l/y.png", exitUsage, "--output d/y.png and --trace l/y.png"},
		{"-o y.png -n 3 --stats y-2.png", exitUsage, "--output y-2.png and --stats y-2.png"},
		{"-o n.png -n 2", exitUsage, "--output n-0.png and --output n-1.png"},
		{"--dump z --stats z", exitUsage, "--dump z and --stats z"},
		{"--trace z --stats z", exitUsage, "--trace z and --stats z"},
		{"--trace missing/t.json", exitFailed, "--trace: write missing/t.json: folder missing does not exist"},
		{"--trace d", exitFailed, "--trace: write d: it is a folder"},
		{"--stats missing/s.json", exitFailed, "--stats: write missing/s.json"},
		{"--stats d", exitFailed, "--stats: write d: it is a folder"},
		{"--dump d", exitFailed, "--dump: write d: it is a folder"},
		{"-o x.png -n 2", exitFailed, "--output: write x-1.png: it is a folder"},
	} {
		code, _, stderr := command(t, nil, append(strings.Fields("generate --model ./none "+c.args), "x")...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 4 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Each picture of a batch has a seed of its own, which makes it again alone, byte for byte.
func TestSeedOfAPictureReproducesIt(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := command(t, nil, small("--model", checkpoint, "--seed", "7", "-n", "3", "-o", filepath.Join(dir, "p%d.png"), "a cat")...)
	if code != exitOK || strings.Count(stdout, "\n") != 3 {
		t.Fatalf("exit %d, %q, %s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "p2.png: seed 9") {
		t.Errorf("the third picture's seed is not printed: %s", stderr)
	}
	alone := filepath.Join(dir, "alone.png")
	if code, _, stderr := command(t, nil, small("--model", checkpoint, "--seed", "9", "-o", alone, "a cat")...); code != exitOK {
		t.Fatal(stderr)
	}
	a, _ := os.ReadFile(filepath.Join(dir, "p2.png"))
	b, _ := os.ReadFile(alone)
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Error("the third picture of seed 7 is not the picture of seed 9")
	}
}

// The same seed gives the same bytes, whatever the number of threads, in every mode.
func TestSameBytes(t *testing.T) {
	var first []byte
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, mode := range []string{"strict", "fused", "compiled"} {
		for _, threads := range []int{1, 2, 3} {
			runtime.GOMAXPROCS(threads)
			out := filepath.Join(t.TempDir(), "x.png")
			code, _, stderr := command(t, map[string]string{"GESSO_MODE": mode}, small("--model", checkpoint, "--seed", "1", "--dtype", "bf16", "-o", out, "x")...)
			if code != exitOK {
				t.Fatal(stderr)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			} else if !bytes.Equal(first, b) {
				t.Errorf("%s with %d threads gives other bytes", mode, threads)
			}
		}
	}
}

// Without --model the built-in model makes the picture, with its own settings.
func TestBuiltInModel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	code, stdout, stderr := command(t, nil, "generate", "--seed", "0", "-o", out, "a red apple")
	if code != exitOK || stdout != out+"\n" {
		t.Fatalf("exit %d, %q, %s", code, stdout, stderr)
	}
	_, shown, _ := command(t, nil, "show", out)
	for _, want := range []string{"model: gesso-demo", "width: 64", "height: 64", "steps: 8"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %s", want, shown)
		}
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = command(t, map[string]string{"GESSO_CACHE": filepath.Join(blocked, "x")}, "generate", "-o", out, "a red apple")
	if code != exitFailed || !strings.Contains(stderr, "built-in model") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestShow(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	code, stdout, stderr := command(t, map[string]string{"TERM": "xterm-kitty"}, small("--model", checkpoint, "--seed", "1", "--show", "-o", out, "x")...)
	if code != exitOK || stdout != out+"\n" || !strings.Contains(stderr, "\x1b_G") {
		t.Errorf("exit %d, stdout %q, stderr %.80q", code, stdout, stderr)
	}
	code, _, stderr = command(t, nil, small("--model", checkpoint, "--seed", "1", "--show", "-o", out, "x")...)
	if code != exitOK || strings.Count(stderr, "▀") != 48*16 {
		t.Errorf("exit %d, %d half blocks", code, strings.Count(stderr, "▀"))
	}
}

// What would command the terminal is shown, not sent: of a picture, a model, and what a remark quotes.
func TestEscapesAreShown(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	if code, _, stderr := command(t, nil, small("--model", checkpoint, "--seed", "1", "-o", out, "a\x1b[2J\a cat")...); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if _, stdout, _ := command(t, nil, "show", out); !strings.Contains(stdout, `prompt: a\x1b[2J\a cat`) || strings.ContainsAny(stdout, "\x1b\a") {
		t.Errorf("%q", stdout)
	}
	long := strings.Repeat("a cat ", 30) + "\x1b[2J\u009b cat"
	if _, _, stderr := command(t, nil, small("--model", checkpoint, "--seed", "1", "-o", out, long)...); !strings.Contains(stderr, "cut off") || !strings.Contains(stderr, `\x1b`) || !strings.Contains(stderr, `\u009b`) || strings.ContainsAny(stderr, "\x1b\u009b") {
		t.Errorf("%q", stderr)
	}
	model := damage(t, func(dir string) {
		edit(t, filepath.Join(dir, "model_index.json"), `"FluxPipeline"`, `"Flux\u001b[2J\nlicence:\tfree"`)
		edit(t, filepath.Join(dir, "model_index.json"), `"CLIPTextModel"`, `"CLIP\u0007\nText"`)
		if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("---\nlicense: free\x1b[2J\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	_, stdout, stderr := command(t, nil, "show", model) // and needs no folder of downloads
	for _, want := range []string{`Flux\x1b[2J\nlicence:\tfree`, `free\x1b[2J`, `CLIP\a\nText`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("show prints no %q:\n%q%s", want, stdout, stderr)
		}
	}
	if strings.ContainsAny(stdout, "\x1b\a") || strings.Count(stdout, "\nlicence:") != 1 {
		t.Errorf("%q", stdout)
	}
}

// Whatever prints to a full disk, the command fails and says so.
func TestStdoutFull(t *testing.T) {
	full := writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC })
	for _, args := range []string{"--help", "help", "", "generate --help", "cache", "version", "completion bash", "devices", "devices --json", "show " + checkpoint} {
		var stderr bytes.Buffer
		code := run(t.Context(), &environment{stdout: full, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now}, strings.Fields(args))
		if code != exitFailed || stderr.String() != "gesso: "+syscall.ENOSPC.Error()+"\n" {
			t.Errorf("%s: exit %d, %q", args, code, stderr.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRandomSeedIsPrinted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	code, _, stderr := command(t, nil, small("--model", checkpoint, "-o", out, "x")...)
	if code != exitOK || !strings.Contains(stderr, "seed ") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// The prompt ends before the newline, and has an end.
func TestPromptFromStdin(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	for in, want := range map[string]string{"a fox\n": "prompt: a fox\nprompt_2", strings.Repeat("x", 16<<20+1): "longer than 16777216 bytes"} {
		var stdout, stderr bytes.Buffer
		env := &environment{stdout: &stdout, stderr: &stderr, stdin: strings.NewReader(in), getenv: func(string) string { return "" }, now: time.Now}
		code := run(t.Context(), env, small("--model", checkpoint, "--prompt-2", "x", "--seed", "1", "-o", out, "-"))
		_, shown, _ := command(t, nil, "show", out)
		if len(in) < 10 && (code != exitOK || !strings.Contains(shown, want)) || len(in) > 10 && (code != exitUsage || !strings.Contains(stderr.String(), want)) {
			t.Errorf("exit %d: %s%s", code, stderr.String(), shown)
		}
	}
}

func TestPromptFromStdinAndLongPrompt(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.png")
	if code, _, stderr := command(t, nil, small("--model", checkpoint, "--seed", "1", "-o", out, "-")...); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, _, stderr := command(t, nil, small("--model", checkpoint, "--seed", "1", "-o", out, strings.Repeat("a cat and a dog ", 100_000/16))...)
	if code != exitOK || strings.Count(stderr, "cut off") != 2 {
		t.Errorf("exit %d, want two truncation warnings: %.300s", code, stderr)
	}
}

// damage copies the checkpoint and changes it.
func damage(t *testing.T, change func(dir string)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(checkpoint)); err != nil {
		t.Fatal(err)
	}
	change(dir)
	return dir
}

func edit(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Bad input: one line that says what, where and what to do; exit code 1 or 2; no file.
func TestBadInput(t *testing.T) {
	transformer := "transformer/diffusion_pytorch_model.safetensors"
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		make func(dir string) // damages the model
		code int
		want []string
	}{
		{name: "no prompt", args: []string{"generate"}, code: exitUsage, want: []string{"prompt"}},
		{name: "two prompts", args: []string{"generate", "a", "b"}, code: exitUsage, want: []string{"one prompt"}},
		{name: "unknown flag", args: []string{"generate", "--hight", "3", "a"}, code: exitUsage, want: []string{"--hight"}},
		{name: "unknown command", args: []string{"genrate"}, code: exitUsage, want: []string{"genrate"}},
		{name: "height 0", args: small("--model", checkpoint, "--height", "0", "x"), code: exitUsage, want: []string{"--height", "0"}},
		{name: "height -8", args: small("--model", checkpoint, "--height", "-8", "x"), code: exitUsage, want: []string{"--height", "-8"}},
		{name: "height 100000", args: small("--model", checkpoint, "--height", "100000", "x"), code: exitUsage, want: []string{"height", "100000"}},
		{name: "height 3", args: small("--model", checkpoint, "--height", "3", "x"), code: exitFailed, want: []string{"height", "16"}},
		{name: "height word", args: small("--model", checkpoint, "--height", "tall", "x"), code: exitUsage, want: []string{"height", "tall"}},
		{name: "steps 0", args: small("--model", checkpoint, "--steps", "0", "x"), code: exitUsage, want: []string{"--steps", "0"}},
		{name: "seed word", args: small("--model", checkpoint, "--seed", "seven", "x"), code: exitUsage, want: []string{"--seed", "seven"}},
		{name: "seed fraction", args: small("--model", checkpoint, "--seed", "1.5", "x"), code: exitUsage, want: []string{"--seed", "1.5"}},
		{name: "seed too large", args: small("--model", checkpoint, "--seed", "18446744073709551616", "x"), code: exitUsage, want: []string{"--seed"}},
		{name: "dtype", args: small("--model", checkpoint, "--dtype", "f33", "x"), code: exitUsage, want: []string{"--dtype", "f33", "bf16"}},
		{name: "dtype int", args: small("--model", checkpoint, "--dtype", "i32", "x"), code: exitUsage, want: []string{"--dtype"}},
		{name: "mode", args: small("--model", checkpoint, "--mode", "fast", "x"), code: exitUsage, want: []string{"--mode", "fast", "fused"}},
		{name: "mode variable", args: small("--model", checkpoint, "x"), env: map[string]string{"GESSO_MODE": "fast"}, code: exitUsage, want: []string{"GESSO_MODE", "fast"}},
		{name: "cache limit", args: small("--model", checkpoint, "x"), env: map[string]string{"GESSO_CACHE_LIMIT": "-5"}, code: exitUsage, want: []string{"GESSO_CACHE_LIMIT", "-5"}},
		{name: "isa variable", args: small("--model", checkpoint, "x"), env: map[string]string{"GESSO_CPU_ISA": "sse9"}, code: exitFailed, want: []string{"GESSO_CPU_ISA", "sse9"}},
		{name: "device", args: small("--model", checkpoint, "--device", "abacus", "x"), code: exitUsage, want: []string{"--device", "abacus"}},
		{name: "output type", args: small("--model", checkpoint, "-o", "x.gif", "x"), code: exitUsage, want: []string{"--output", "x.gif", ".png"}},
		{name: "output folder missing", args: small("--model", checkpoint, "-o", "nowhere/x.png", "x"), code: exitFailed, want: []string{"--output", "nowhere"}},
		{name: "dump folder missing", args: small("--model", checkpoint, "--dump", "nowhere/x.safetensors", "x"), code: exitFailed, want: []string{"--dump", "nowhere"}},
		{name: "model folder missing", args: small("--model", "./no/such/folder", "x"), code: exitFailed, want: []string{"--model", "no/such/folder", "no such", "org/name"}},
		{name: "model path missing", args: small("--model", "no/such/folder", "x"), code: exitFailed, want: []string{"no/such/folder: no such"}},
		{name: "model path with a slash missing", args: small("--model", "models/flux/", "x"), code: exitFailed, want: []string{"models/flux/: no such"}},
		{name: "model of Windows missing", args: small("--model", `models\flux`, "x"), code: exitFailed, want: []string{`models\flux: no such`}},
		{name: "model file missing", args: small("--model", "models/flux.safetensors", "x"), code: exitFailed, want: []string{"flux.safetensors: no such"}},
		{name: "model at home", args: small("--model", "~/flux", "x"), code: exitFailed, want: []string{"~/flux: no such", "shell"}},
		{name: "model to plan missing", args: []string{"plan", "--model", "no/such/folder"}, code: exitFailed, want: []string{"--model", "no/such/folder: no such"}},
		{name: "show nothing", args: []string{"show", "./nothing"}, code: exitFailed, want: []string{"./nothing: no such file or folder"}},
		{name: "show a folder of other things", args: []string{"show", "."}, code: exitFailed, want: []string{".: holds no model", "model_index.json"}},
		{name: "show weights", args: []string{"show", checkpoint + "/vae/diffusion_pytorch_model.safetensors"}, code: exitFailed, want: []string{"safetensors", "not a PNG", "folder"}},
		{name: "max length", args: small("--model", checkpoint, "--max-sequence-length", "513", "x"), code: exitFailed, want: []string{"512", "513"}},
		{name: "image missing", args: small("--model", checkpoint, "--image", "no.png", "x"), code: exitFailed, want: []string{"--image", "no.png", "no such file"}},
		{name: "image is none", args: small("--model", checkpoint, "--image", "cmd_test.go", "x"), code: exitFailed, want: []string{"--image", "cmd_test.go", "not a PNG"}},
		{name: "image folder", args: small("--model", checkpoint, "--image", "..", "x"), code: exitFailed, want: []string{"--image", ".."}},
		{name: "mask is none", args: small("--model", checkpoint, "--image", rgb, "--mask", "cmd_test.go", "x"), code: exitFailed, want: []string{"--mask", "cmd_test.go"}},
		{name: "model empty", args: small("--model", "", "x"), code: exitUsage, want: []string{"--model is empty"}},
		{name: "image empty", args: small("--model", checkpoint, "--image", "", "x"), code: exitUsage, want: []string{"--image is empty"}},
		{name: "revision alone", args: small("--revision", "v1", "x"), code: exitUsage, want: []string{"--revision needs --model"}},
		{name: "escapes in a message", args: small("--model", "./no\x1b[2Jne", "x"), code: exitFailed, want: []string{`./no\x1b[2Jne`}},
		{name: "steps", args: small("--steps", "x", "x"), code: exitUsage, want: []string{`invalid argument "x" for "--steps" flag: invalid syntax; see`}},
		{name: "strength 0", args: small("--model", checkpoint, "--image", rgb, "--strength", "0", "x"), code: exitUsage, want: []string{"--strength", "above 0", "got 0"}},
		{name: "strength 1.5", args: small("--model", checkpoint, "--image", rgb, "--strength", "1.5", "x"), code: exitUsage, want: []string{"--strength", "at most 1", "1.5"}},
		{name: "strength NaN", args: small("--model", checkpoint, "--image", rgb, "--strength", "nan", "x"), code: exitUsage, want: []string{"--strength", "NaN"}},
		{name: "strength alone", args: small("--model", checkpoint, "--strength", "0.5", "x"), code: exitUsage, want: []string{"--strength", "--image"}},
		{name: "mask alone", args: small("--model", checkpoint, "--mask", rgb, "x"), code: exitUsage, want: []string{"--mask", "--image"}},
		{name: "lora missing", args: small("--model", checkpoint, "--lora", "no.safetensors", "x"), code: exitFailed, want: []string{"--lora no.safetensors", "no such file"}},
		{name: "lora weight", args: small("--model", checkpoint, "--lora", "cmd_test.go:much", "x"), code: exitFailed, want: []string{"--lora cmd_test.go:much", "not a number"}},
		{name: "lora folder", args: small("--model", checkpoint, "--lora", "..", "x"), code: exitFailed, want: []string{"--lora ..", "folder"}},
		{name: "lora no file of its kind", args: small("--model", checkpoint, "--lora", "cmd_test.go:0.5", "x"), code: exitFailed, want: []string{"cmd_test.go", "header"}},
		{name: "lora infinite", args: small("--model", checkpoint, "--lora", "../../testdata/golden/inputs/lora_alpha.safetensors:inf", "x"), code: exitFailed, want: []string{"lora_alpha", "finite"}},
		{name: "verify nothing", args: []string{"verify", "."}, code: exitFailed, want: []string{"no reference cases"}},
		{name: "verify missing", args: []string{"verify", "nowhere"}, code: exitFailed, want: []string{"nowhere: no such folder", "cases/", "testdata/golden"}},
		{name: "verify a file", args: []string{"verify", "cmd_test.go"}, code: exitFailed, want: []string{"cmd_test.go: no such folder"}},
		{name: "bundle missing", args: []string{"cache", "add", "nowhere"}, code: exitFailed, want: []string{"nowhere: no such folder", "gesso compile --output"}},
		{name: "verify filter", args: []string{"verify", "--filter", "(", "../../testdata/golden"}, code: exitUsage, want: []string{"--filter"}},
		{name: "show no picture", args: []string{"show", "cmd_test.go"}, code: exitFailed, want: []string{"cmd_test.go"}},
		{name: "no model_index.json", make: func(d string) { os.Remove(filepath.Join(d, "model_index.json")) }, code: exitFailed, want: []string{"model_index.json"}},
		{name: "unknown pipeline", make: func(d string) { edit(t, filepath.Join(d, "model_index.json"), "FluxPipeline", "PlasmaPipeline") },
			code: exitFailed, want: []string{"PlasmaPipeline", "FluxPipeline"}},
		{name: "unknown component class", make: func(d string) { edit(t, filepath.Join(d, "model_index.json"), "CLIPTextModel", "BertModel") },
			code: exitFailed, want: []string{"text_encoder", "BertModel"}},
		{name: "missing shard", make: func(d string) { os.Remove(filepath.Join(d, transformer)) }, code: exitFailed, want: []string{"transformer"}},
		{name: "truncated shard", make: func(d string) { os.Truncate(filepath.Join(d, transformer), 5000) }, code: exitFailed, want: []string{transformer}},
		{name: "corrupt config", make: func(d string) {
			edit(t, filepath.Join(d, "transformer/config.json"), `"num_attention_heads": 2`, `"num_attention_heads": "two"`)
		}, code: exitFailed, want: []string{"transformer/config.json", "num_attention_heads"}},
		{name: "config is no JSON", make: func(d string) { edit(t, filepath.Join(d, "vae/config.json"), "{", "") }, code: exitFailed, want: []string{"vae/config.json", "line"}},
		{name: "config does not fit", make: func(d string) {
			edit(t, filepath.Join(d, "transformer/config.json"), `"num_layers": 2`, `"num_layers": 3`)
		},
			code: exitFailed, want: []string{"missing", "transformer_blocks.2."}},
		{name: "extra keys", make: func(d string) {
			edit(t, filepath.Join(d, "transformer/config.json"), `"num_layers": 2`, `"num_layers": 1`)
		},
			code: exitFailed, want: []string{"unexpected", "transformer_blocks.1."}},
		{name: "wrong shape", make: func(d string) {
			edit(t, filepath.Join(d, "transformer/config.json"), `"joint_attention_dim": 32`, `"joint_attention_dim": 24`)
		}, code: exitFailed, want: []string{"wrong shape", "context_embedder.weight", "[32 32]", "[32 24]"}},
		{name: "integers for weights", make: func(d string) {
			edit(t, filepath.Join(d, transformer), `"proj_out.bias":{"dtype":"F32"`, `"proj_out.bias":{"dtype":"I32"`)
		}, code: exitFailed, want: []string{"transformer: proj_out.bias: stored as i32 in diffusion_pytorch_model.safetensors", "floating-point"}},
		{name: "tokenizer gone", make: func(d string) { os.RemoveAll(filepath.Join(d, "tokenizer")) }, code: exitFailed, want: []string{"tokenizer"}},
		{name: "scheduler class", make: func(d string) {
			edit(t, filepath.Join(d, "scheduler/scheduler_config.json"), "FlowMatchEulerDiscreteScheduler", "MagicScheduler")
		}, code: exitFailed, want: []string{"scheduler_config.json", "MagicScheduler"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, dir := c.args, t.TempDir()
			if c.make != nil {
				args = small("--model", damage(t, c.make), "x")
			}
			if args[0] == "generate" && !strings.Contains(strings.Join(args, " "), "-o ") {
				args = append(args, "-o", filepath.Join(dir, "x.png"))
			}
			code, stdout, stderr := command(t, c.env, args...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			last := strings.TrimSuffix(stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:], "\n")
			if !strings.HasPrefix(last, "gesso: ") || stdout != "" {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(last, w) {
					t.Errorf("%q does not say %q", last, w)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// NaN in the weights is reported with the stage, advice is what can help, and no picture is written.
func TestNaNIsReported(t *testing.T) {
	dir := t.TempDir()
	model := damage(t, func(d string) {
		path := filepath.Join(d, "transformer/diffusion_pytorch_model.safetensors")
		f, err := weights.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tensor, err := f.Tensor("proj_out.bias")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, tensor.Bytes())
		f.Close()
		copy(b[at:], []byte{0, 0, 0xc0, 0x7f})
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	out := filepath.Join(dir, "x.png")
	for dtype, advice := range map[string]string{"f32": "weights", "bf16": "weights", "f16": "--dtype bf16 or f32"} {
		code, _, stderr := command(t, nil, small("--model", model, "--dtype", dtype, "-o", out, "x")...)
		if code != exitFailed || !strings.Contains(stderr, "step 1") || !strings.Contains(stderr, "not finite") ||
			!strings.Contains(stderr, advice) || strings.Contains(stderr, "--dtype") != (dtype == "f16") {
			t.Errorf("%s: exit %d, %q", dtype, code, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a picture was written")
	}
}

// A full disk leaves no file.
func TestDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a small file system")
	}
	dir := t.TempDir()
	if err := mountTiny(dir); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unmount(dir)
	code, _, stderr := command(t, nil, "generate", "--model", checkpoint, "--height", "256", "--width", "256", "--steps", "1", "--max-sequence-length", "16",
		"-o", filepath.Join(dir, "x.png"), "x")
	if code != exitFailed || !strings.Contains(stderr, syscall.ENOSPC.Error()) {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An interrupt ends the run at a step, with exit code 130 and no file.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	env := &environment{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, now: time.Now}
	env.stdin = readerFunc(func(p []byte) (int, error) { cancel(); return copy(p, "x"), syscall.EPIPE })
	time.AfterFunc(150*time.Millisecond, cancel)
	code := run(ctx, env, []string{"generate", "--model", checkpoint, "--height", "128", "--width", "128", "--steps", "1000", "-o", filepath.Join(dir, "x.png"), "x"})
	if code != exitInterrupted {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || out.Len() > 0 {
		t.Errorf("left behind: %v, stdout %q", left, out.String())
	}
}

// A signal ends the process while it waits for its input, or computes, wherever it is.
func TestSignal(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"input":   {"generate", "-o", filepath.Join(dir, "x.png"), "-"},
		"program": {"generate", "--model", checkpoint, "--height", "8192", "--width", "8192", "--steps", "1", "-o", filepath.Join(dir, "x.png"), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], args...)
			c.Env = append(os.Environ(), "GESSO_TEST_MAIN=1", "XDG_CACHE_HOME="+t.TempDir())
			stdin, err := c.StdinPipe() // stays open
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // where it is then doesn't matter
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Skip(err) // a system without this signal
			}
			c.Wait()
			if code := c.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit %d", code)
			}
		})
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestVerifyAndDevices(t *testing.T) {
	dump := t.TempDir()
	code, stdout, stderr := command(t, nil, "verify", "--filter", "^flux_schnell_base$", "--dump-dir", dump, "../../testdata/golden")
	if code != exitOK || !strings.Contains(stdout, "1 passed, 0 failed, 0 not supported") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dump, "flux_schnell_base.safetensors")); err != nil {
		t.Error(err)
	}
	if code, stdout, _ = command(t, nil, "verify", "../../testdata/golden/cases/flux_schnell_base"); code != exitOK || !strings.Contains(stdout, "1 passed") {
		t.Errorf("one case: exit %d, %q", code, stdout)
	}
	if code, stdout, _ = command(t, nil, "devices"); code != exitOK || !strings.HasPrefix(stdout, "cpu:0") {
		t.Errorf("devices: exit %d, %q", code, stdout)
	}
	png := filepath.Join(dump, "x.png")
	if code, _, stderr = command(t, nil, small("--model", checkpoint, "--device", strings.Fields(stdout)[0], "-o", png, "x")...); code != exitOK {
		t.Errorf("the device that devices prints: exit %d, %q", code, stderr)
	}
	if code, stdout, _ = command(t, nil, "version"); code != exitOK || !strings.HasPrefix(stdout, "gesso ") {
		t.Errorf("version: exit %d, %q", code, stdout)
	}
}
