package capi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// promise makes a promised tensor<4xf32>; the test is skipped where the plugin can't.
func promise(t *testing.T, c *capi.Client) (*capi.Buffer, *capi.Promise) {
	t.Helper()
	m, err := c.AddressableDevices()[0].DefaultMemory()
	if err != nil {
		t.Fatal(err)
	}
	b, p, err := c.NewPromise(capi.F32, []int64{4}, m)
	if capi.CodeOf(err) == capi.Unimplemented {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, p
}

// A program is issued before its argument is there, and runs, or fails, when it is.
func TestPromise(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		e := compile(t, c, double4, capi.CompileOptions{})
		issue := func(b *capi.Buffer) (*capi.Buffer, *capi.Event) {
			out, done, err := e.Execute([][]*capi.Buffer{{b}}, capi.ExecuteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { out[0][0].Close(); done[0].Close() })
			if ready, err := done[0].Ready(); ready {
				t.Fatalf("the program ran without its argument: %v", err)
			}
			return out[0][0], done[0]
		}
		b, p := promise(t, c)
		out, done := issue(b)
		if err := p.Fulfill(put(t, c, 0, []float32{1, 2, 3, 4}, 4)); err != nil {
			t.Fatal(err)
		}
		if err := done.Await(); err != nil {
			t.Fatal(err)
		}
		if got := get(t, out, 4); !slices.Equal(got, []float32{2, 4, 6, 8}) {
			t.Errorf("got %v", got)
		}
		b, p = promise(t, c)
		out, done = issue(b)
		if err := p.Fail(capi.Aborted, "the other side is gone"); err != nil {
			t.Fatal(err)
		}
		if err := done.Await(); err == nil || !strings.Contains(err.Error(), "the other side is gone") {
			t.Errorf("the event says %v", err)
		}
		read, err := out.ToHost(make([]byte, 16))
		if err == nil {
			err = read.Await()
			read.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "the other side is gone") {
			t.Errorf("the result says %v", err)
		}
	})
}
