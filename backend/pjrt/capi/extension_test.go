package capi_test

import (
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// A value lies as the client's default says, and a plugin without layouts says so.
func TestLayouts(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		x := put(t, c, 0, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
		defer x.Close()
		got, err := x.Layout()
		if capi.CodeOf(err) == capi.Unimplemented {
			t.Skip(err)
		}
		if err != nil || got == "" {
			t.Fatalf("layout %q, %v", got, err)
		}
		want, err := c.DefaultLayout(capi.F32, []int64{2, 3})
		if err != nil || got != want {
			t.Errorf("layout %q, the default is %q, %v", got, want, err)
		}
		x.Close()
		if _, err := x.Layout(); capi.CodeOf(err) != capi.FailedPrecondition {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A value goes to pinned memory of the host and back, where the plugin has such.
func TestPinnedHost(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		x := put(t, c, 0, []float32{1, 2, 3}, 3)
		defer x.Close()
		home, err := x.Memory()
		if err != nil {
			t.Fatal(err)
		}
		memories, err := c.AddressableDevices()[0].Memories()
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, m := range memories {
			kind, err := m.Kind()
			if err != nil {
				t.Fatal(err)
			}
			if kind != "pinned_host" && kind != "unpinned_host" {
				continue
			}
			tried++
			y, err := x.CopyToMemory(m)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			there, err := y.Memory()
			if err != nil {
				t.Fatal(err)
			}
			if k, err := there.Kind(); err != nil || k != kind {
				t.Errorf("the copy lies in %s, %v, expected %s", k, err, kind)
			}
			z, err := y.CopyToMemory(home)
			if err != nil {
				t.Fatal(err)
			}
			if got := get(t, z, 3); got[0] != 1 || got[2] != 3 {
				t.Errorf("%s and back: %v", kind, got)
			}
			y.Close()
			z.Close()
		}
		if tried == 0 {
			t.Error("the plugin has no memory of the host")
		}
	})
}

// XLA's CPU plugins have no profiler, which is an error and no crash.
func TestNoProfiler(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		if _, err := loadPlugin(t, path).NewProfiler(nil); capi.CodeOf(err) != capi.Unimplemented {
			t.Errorf("got %v", err)
		}
	})
}

// libtpu has one; without a chip there is little to record.
func TestTPUProfiler(t *testing.T) {
	p := loadPlugin(t, plugintest.TPU(t))
	r, err := p.NewProfiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, do := range []func() error{r.Start, r.Stop} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Collect(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
