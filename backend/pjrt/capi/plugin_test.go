package capi_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

func loadPlugin(t testing.TB, path string) *capi.Plugin {
	t.Helper()
	p, err := capi.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Initialize(); err != nil {
		t.Fatal(err)
	}
	return p
}

func newClient(t testing.TB, path string, o capi.ClientOptions) *capi.Client {
	t.Helper()
	c, err := loadPlugin(t, path).NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestClient looks at what a client says of itself.
func TestClient(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		p := loadPlugin(t, path)
		if p.Path() != path {
			t.Errorf("path is %q", p.Path())
		}
		attributes, err := p.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := attributes["stablehlo_current_version"].([]int64); !ok || len(v) != 3 || v[0] < 1 {
			t.Errorf("stablehlo_current_version is %v", attributes["stablehlo_current_version"])
		}
		if len(p.Extensions()) == 0 {
			t.Error("no extension; XLA's CPU plugins have some")
		}
		c, err := p.NewClient(capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(3)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if name, err := c.PlatformName(); err != nil || name != "cpu" {
			t.Errorf("platform %q, %v", name, err)
		}
		if v, err := c.PlatformVersion(); err != nil || v == "" {
			t.Errorf("version %q, %v", v, err)
		}
		if i, err := c.ProcessIndex(); err != nil || i != 0 {
			t.Errorf("process %d, %v", i, err)
		}
		all, err := c.Devices()
		if err != nil || len(all) != 3 || len(c.AddressableDevices()) != 3 {
			t.Fatalf("%d devices, %d here, %v; asked for 3", len(all), len(c.AddressableDevices()), err)
		}
		if ids, err := c.DefaultAssignment(1, 3); err != nil || !slices.Equal(ids, []int32{0, 1, 2}) {
			t.Errorf("default assignment %v, %v", ids, err)
		}
		for i, d := range c.AddressableDevices() {
			desc, err := d.Description()
			if err != nil {
				t.Fatal(err)
			}
			if id, err := desc.ID(); err != nil || id != i {
				t.Errorf("device %d has id %d, %v", i, id, err)
			}
			if kind, err := desc.Kind(); err != nil || kind == "" {
				t.Errorf("device %d is a %q, %v", i, kind, err)
			}
			if _, err := desc.Attributes(); err != nil {
				t.Error(err)
			}
			if desc.String() == "" {
				t.Error("no description")
			}
			m, err := d.DefaultMemory()
			if err != nil {
				t.Fatal(err)
			}
			if kind, err := m.Kind(); err != nil || kind == "" {
				t.Errorf("memory %q, %v", kind, err)
			}
			if ds, err := m.Devices(); err != nil || len(ds) == 0 {
				t.Errorf("%d devices share the memory, %v", len(ds), err)
			}
			if ms, err := d.Memories(); err != nil || len(ms) == 0 {
				t.Errorf("%d memories, %v", len(ms), err)
			}
			if s, err := d.MemoryStats(); err == nil && s.InUse < 0 {
				t.Errorf("%+v", s)
			} else if err != nil && capi.CodeOf(err) != capi.Unimplemented {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		if _, err := c.PlatformName(); err == nil {
			t.Error("a closed client answered")
		}
	})
}

// TestNoPlugin: what is not a plugin is told apart, in one line that names the file.
func TestNoPlugin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"missing":  filepath.Join(dir, "missing.so"),
		"text":     write("text.so", "hello"),
		"empty":    write("empty.so", ""),
		"a folder": dir,
		"no PJRT":  "/lib/x86_64-linux-gnu/libm.so.6",
	} {
		if _, err := os.Stat(path); err != nil && name == "no PJRT" {
			continue // another system
		}
		_, err := capi.Load(path)
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		p := loadPlugin(t, path)
		if _, err := p.NewClient(capi.ClientOptions{Options: map[string]any{"cpu_device_count": 1.5}}); err == nil || !strings.Contains(err.Error(), "cpu_device_count") {
			t.Errorf("an option of a wrong Go type: %v", err)
		}
		if _, err := p.NewTopology("", nil); err == nil {
			t.Error("a topology without a name was made")
		}
	})
}

func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(zero)))
}
