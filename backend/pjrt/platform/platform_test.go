package platform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// TestMain makes the test binary its own probe. A probe that is told to crash does so before it looks at anything.
func TestMain(m *testing.M) {
	if os.Getenv(probeKey) != "" && os.Getenv("GESSO_TEST_CRASH") != "" {
		panic("Check failed: the plugin is bad")
	}
	if code, child := Main(os.Stdout); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// machine is a Finder for a machine that has nothing but what the test puts there.
func machine(t *testing.T, environ ...string) *Finder {
	return &Finder{
		Environ: environ, Root: t.TempDir(), CacheDir: t.TempDir(), Setenv: func(k, v string) error { t.Setenv(k, v); return nil },
		Probe: func(context.Context, string, string, []string) (Info, error) {
			t.Error("a plugin was probed")
			return Info{}, errors.New("unexpected")
		},
	}
}

func write(t *testing.T, content string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseDevice(t *testing.T) {
	for in, want := range map[string]struct {
		name string
		n    int
		ok   bool
	}{
		"tpu": {"tpu", 0, true}, "tpu:3": {"tpu", 3, true}, "xla-cpu:0": {"xla-cpu", 0, true},
		"tpu:": {}, "tpu:x": {}, "tpu:-1": {}, "tpu:1:2": {}, "tpu:99999999": {},
	} {
		name, n, err := ParseDevice(in)
		if (err == nil) != want.ok || name != want.name || n != want.n {
			t.Errorf("%q: %q, %d, %v", in, name, n, err)
		}
	}
}

// Each place wins over those after it.
func TestFind(t *testing.T) {
	venv := t.TempDir()
	f := machine(t, "VIRTUAL_ENV="+venv)
	if _, err := f.Find("tpu"); !errors.Is(err, ErrNoPlugin) || strings.Contains(err.Error(), "\n") {
		t.Errorf("nothing there: %v", err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := f.Find("tpu"); err != nil || got != want {
			t.Errorf("found %q, %v, expected %q", got, err, want)
		}
	}
	expect(write(t, "", f.Root, "usr", "lib", "libtpu.so"))
	expect(write(t, "", venv, "lib", "python3.11", "site-packages", "libtpu", "libtpu.so"))
	expect(write(t, "", venv, "lib", "python3.12", "site-packages", "libtpu", "libtpu.so"))
	expect(write(t, "", f.CacheDir, "plugins", "tpu", "libtpu.so"))
	own := write(t, "", t.TempDir(), "own.so")
	f.Environ = append(f.Environ, "TPU_LIBRARY_PATH="+own)
	expect(own)
	mine := write(t, "", t.TempDir(), "mine.so")
	f.Environ = append(f.Environ, "GESSO_PLUGIN_TPU="+mine)
	expect(mine)
	f.Environ = append(f.Environ, "GESSO_PLUGIN_TPU=/does/not/exist.so")
	if _, err := f.Find("tpu"); err == nil || !strings.Contains(err.Error(), "GESSO_PLUGIN_TPU") || !strings.Contains(err.Error(), "/does/not/exist.so") {
		t.Errorf("a path that doesn't exist: %v", err)
	}
}

func TestOwnPlatform(t *testing.T) {
	so := write(t, "", t.TempDir(), "npu.so")
	f := machine(t, "GESSO_PLUGIN_MY_NPU="+so)
	if names := f.Names(); !slices.Equal(names, []string{"xla-cpu", "tpu", "cuda", "my-npu"}) {
		t.Errorf("names %v", names)
	}
	if path, err := f.Find("my-npu"); err != nil || path != so {
		t.Errorf("%q, %v", path, err)
	}
	if _, _, err := f.Open(t.Context(), "abacus"); err == nil || !strings.Contains(err.Error(), "my-npu") || !strings.Contains(err.Error(), "GESSO_PLUGIN_ABACUS") {
		t.Errorf("an unknown device: %v", err)
	}
}

// Without chips libtpu is not loaded for use, and what is asked for is answered at once.
func TestNoHardware(t *testing.T) {
	f := machine(t)
	write(t, "", f.CacheDir, "plugins", "tpu", "libtpu.so")
	start := time.Now()
	for _, name := range []string{"tpu", "cuda"} {
		_, _, err := f.Open(t.Context(), name)
		if !errors.Is(err, ErrNoDevice) || !strings.HasPrefix(err.Error(), "no ") || !strings.Contains(err.Error(), " on this machine") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %s to say so", d)
	}
	// List looks at the plugin, in an environment in which it asks no metadata server.
	var env []string
	f.Probe = func(_ context.Context, name, _ string, e []string) (Info, error) {
		env = e
		return Info{Plugin: "pjrt 0.117"}, nil
	}
	for _, s := range f.List(t.Context()) {
		if s.Name == "tpu" && (!errors.Is(s.Err, ErrNoDevice) || s.Plugin != "pjrt 0.117" || len(s.Devices) > 0) {
			t.Errorf("%+v", s)
		}
	}
	if !slices.Contains(env, "TPU_SKIP_MDS_QUERY=1") {
		t.Errorf("the probe's environment is %v", env)
	}
}

func TestHardware(t *testing.T) {
	f := machine(t)
	pci := func(slot, vendor, device string) {
		write(t, vendor+"\n", f.Root, "sys", "bus", "pci", "devices", slot, "vendor")
		write(t, device+"\n", f.Root, "sys", "bus", "pci", "devices", slot, "device")
	}
	pci("0000:00:03.0", "0x1ae0", "0x0042") // Google's network card
	pci("0000:00:04.0", "0x10de", "0x0063")
	if n := f.tpuChips(); n != 0 {
		t.Errorf("%d chips, there are none", n)
	}
	pci("0000:00:05.0", "0x1ae0", "0x006f")
	pci("0000:00:06.0", "0x1ae0", "0x006f")
	if n := f.tpuChips(); n != 2 || f.hardware("tpu") != nil {
		t.Errorf("%d chips, %v, there are 2", n, f.hardware("tpu"))
	}
	var env []string = []string{"unset"}
	f.Probe = func(_ context.Context, _, _ string, e []string) (Info, error) {
		env = e
		return Info{}, errors.New("the chip is broken")
	}
	write(t, "", f.CacheDir, "plugins", "tpu", "libtpu.so")
	if _, _, err := f.Open(t.Context(), "tpu"); err == nil || err.Error() != "the chip is broken" {
		t.Errorf("got %v", err)
	}
	if len(env) > 0 {
		t.Errorf("with chips the environment is the user's, but the probe got %v", env)
	}
	write(t, "", f.Root, "dev", "nvidia0")
	if err := f.hardware("cuda"); err != nil {
		t.Error(err)
	}
}

// A plugin is probed once, and again when the file has changed or the record is damaged.
func TestRecord(t *testing.T) {
	f := machine(t)
	so := write(t, "one", t.TempDir(), "a plugin.so")
	n := 0
	f.Probe = func(context.Context, string, string, []string) (Info, error) {
		n++
		return Info{Plugin: "pjrt 0.99", Devices: []backend.Device{{Kind: "k"}}}, nil
	}
	look := func(want int) {
		t.Helper()
		info, err := f.examine(t.Context(), "x", so, nil)
		if err != nil || info.Plugin != "pjrt 0.99" || len(info.Devices) != 1 {
			t.Errorf("%+v, %v", info, err)
		}
		if n != want {
			t.Errorf("%d probes, expected %d", n, want)
		}
	}
	look(1)
	look(1)
	write(t, "another", so)
	look(2)
	look(2)
	for _, damaged := range []string{"", "{", "null", `{"x": 3}`, "[]"} {
		write(t, damaged, f.recordFile())
		before := n
		look(before + 1)
	}
	failing := f.Probe
	f.Probe = func(context.Context, string, string, []string) (Info, error) { n++; return Info{}, errors.New("no") }
	write(t, "a third", so)
	for range 2 {
		if _, err := f.examine(t.Context(), "x", so, nil); err == nil {
			t.Error("a failure was remembered as success")
		}
	}
	f.Probe = failing
	f.CacheDir = "" // nothing can be remembered
	before := n
	look(before + 1)
	look(before + 2)
}

// What is no plugin, and what crashes, is an error that names the file.
func TestProbe(t *testing.T) {
	so := write(t, "not a library", t.TempDir(), "bad.so")
	if _, err := probe(t.Context(), "x", so, nil); err == nil || !strings.Contains(err.Error(), so) {
		t.Errorf("not a library: %v", err)
	}
	t.Setenv("GESSO_TEST_CRASH", "1")
	_, err := probe(t.Context(), "x", so, nil)
	if err == nil || !strings.Contains(err.Error(), so+" crashed") || !strings.Contains(err.Error(), "Check failed: the plugin is bad") {
		t.Errorf("a crash: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := probe(ctx, "x", so, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestXLACPU(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		f := machine(t, "GESSO_PLUGIN_XLA_CPU="+path)
		f.Probe = probe
		for _, s := range f.List(t.Context()) {
			if s.Name == "xla-cpu" && (s.Err != nil || s.Path != path || !strings.HasPrefix(s.Plugin, "pjrt 0.") || len(s.Devices) != 1) {
				t.Errorf("%+v", s)
			}
		}
		c, ordinal, err := f.Open(t.Context(), "xla-cpu:2")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if ordinal != 2 || len(c.Devices()) != 3 || c.Platform() != "xla-cpu" {
			t.Errorf("ordinal %d of %d devices of %s", ordinal, len(c.Devices()), c.Platform())
		}
		if b, err := os.ReadFile(f.recordFile()); err != nil || !strings.Contains(string(b), filepath.Base(path)) {
			t.Errorf("the record is %q, %v", b, err)
		}
	})
}
