package aot

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

func TestMain(m *testing.M) {
	if Main() {
		return
	}
	os.Exit(m.Run())
}

func program(name, text string) *pjrt.Program { return &pjrt.Program{Name: name, Text: []byte(text)} }

func TestCompile(t *testing.T) {
	c := New(Options{Plugin: plugintest.Fake(t, plugintest.NoDevices), Topology: "v6e:1x1"})
	defer c.Close()
	info, err := c.Info(t.Context())
	if err != nil || info.Platform != "fake" || len(info.Kinds) != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	r, err := c.Compile(t.Context(), program("block", "module {}"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Arguments != 3e6 || r.Outputs != 2e6 || r.Temporary != 1e6 || r.Alias != 4e5 || r.Peak != 5.6e6 || string(r.Data) != "code" {
		t.Errorf("%+v", r)
	}
	if len(c.idle) != 1 {
		t.Errorf("%d processes are kept for two questions in turn", len(c.idle))
	}
}

// A compiler that aborts is an error that names the program and what it said last; the next program has a new process,
// and the cache has no entry of the one that failed.
func TestCrash(t *testing.T) {
	c := New(Options{Plugin: plugintest.Fake(t, plugintest.NoDevices, plugintest.CrashOn("poison")), Topology: "v6e:1x1"})
	defer c.Close()
	cache := diskcache.New(t.TempDir(), 0)
	get := func(p *pjrt.Program) error {
		_, err := cache.Get(t.Context(), p.Key("fake", "1", ""), func(*diskcache.Entry) error { return nil }, func() (*diskcache.Entry, error) {
			r, err := c.Compile(t.Context(), p)
			if err != nil {
				return nil, err
			}
			return &diskcache.Entry{Name: p.Name, Data: r.Data}, nil
		})
		return err
	}
	for range 2 {
		err := get(program("transformer_blocks.0", "poison"))
		if err == nil || !errors.Is(err, errChild) {
			t.Fatalf("got %v", err)
		}
		for _, text := range []string{"compile transformer_blocks.0 for v6e:1x1", "the compiler crashed", "Check failed: id < LogicalDeviceCount(core_type)"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q doesn't say %q", err, text)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
	}
	if list, err := cache.List(); err != nil || len(list) != 0 {
		t.Errorf("the cache has %v, %v", list, err)
	}
	if err := get(program("fine", "module {}")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if list, err := cache.List(); err != nil || len(list) != 1 || list[0].Name != "fine" {
		t.Errorf("the cache has %v, %v", list, err)
	}
}

// A compile that doesn't end is ended with its context, together with its process.
func TestCancel(t *testing.T) {
	c := New(Options{Plugin: plugintest.Fake(t, plugintest.HangOnCompile), Topology: "v6e:1x1"})
	defer c.Close()
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := c.idle[0]
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Compile(ctx, program("block", "module {}")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p.cmd.ProcessState == nil || len(c.idle) != 0 {
		t.Error("the process lives on")
	}
}

// A plugin that can't be loaded, or dies of it, is an error too.
func TestStart(t *testing.T) {
	for plugin, text := range map[string]string{
		"/does/not/exist.so":                        "no such file",
		plugintest.Fake(t, plugintest.CrashOnInit):  "the compiler crashed: exit status 2: F0000 00:00:00.000000 1 fake.c:1] Check failed: devices > 0",
		plugintest.Fake(t, plugintest.SignalOnInit): "the compiler crashed",
	} {
		c := New(Options{Plugin: plugin, Topology: "v6e:1x1"})
		if _, err := c.Info(t.Context()); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), plugin) {
			t.Errorf("%s: %v, expected %q", plugin, err, text)
		}
		c.Close()
	}
}
