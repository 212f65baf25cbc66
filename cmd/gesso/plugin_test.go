package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// TestMain makes the test binary the child process in which plugins are tried.
func TestMain(m *testing.M) {
	if code, child := platform.Main(os.Stdout); child {
		os.Exit(code)
	}
	if aot.Main() { // and the one in which programs are compiled
		return
	}
	if os.Getenv("GESSO_TEST_MAIN") != "" { // the program itself
		main()
	}
	os.Exit(m.Run())
}

func TestPlugin(t *testing.T) {
	so := plugintest.Wrap(t, plugintest.Newest(t))
	cache := t.TempDir()
	env := map[string]string{"GESSO_CACHE": cache}
	code, stdout, stderr := command(t, env, "plugin", "add", "--name", "abacus", so)
	want := filepath.Join(cache, "plugins", "abacus", "fake.so")
	if code != exitOK || stdout != want+"\n" || !strings.Contains(stderr, "fake for --device abacus: pjrt 0.") || !strings.Contains(stderr, "licence: not stated") {
		t.Fatalf("add: exit %d: %q, %s", code, stdout, stderr)
	}
	if code, stdout, stderr := command(t, env, "plugin", "ls"); code != exitOK || !strings.HasPrefix(stdout, "abacus  fake  pjrt 0.") {
		t.Errorf("ls: exit %d: %q, %s", code, stdout, stderr)
	}
	t.Setenv("GESSO_CACHE", cache) // what the library sees
	if code, stdout, stderr := command(t, env, "devices"); code != exitOK || !strings.Contains(stdout, "abacus:0") {
		t.Errorf("devices: exit %d: %q, %s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, env, "plugin", "rm", "fake"); code != exitOK || !strings.Contains(stderr, "removed "+want) {
		t.Errorf("rm: exit %d: %s", code, stderr)
	}
	if code, _, stderr := command(t, env, "plugin", "rm", "fake"); code != exitFailed || !strings.Contains(stderr, "no plugin fake in "+cache) {
		t.Errorf("rm twice: exit %d: %s", code, stderr)
	}
	bad := plugintest.Fake(t, plugintest.CrashOnInit)
	if code, _, stderr := command(t, env, "plugin", "add", "--name", "abacus", bad); code != exitFailed || !strings.Contains(stderr, "crashed the process that tried it") {
		t.Errorf("a bad one: exit %d: %s", code, stderr)
	}
	for _, args := range [][]string{{"plugin", "add"}, {"plugin", "rm"}, {"plugin", "ls", "x"}} {
		if code, _, stderr := command(t, env, args...); code != exitUsage {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
}

// Without a TPU the device is refused with one line that says so.
func TestNoTPU(t *testing.T) {
	if hit, _ := filepath.Glob("/dev/accel[0-9]*"); len(hit) > 0 {
		t.Skip("this machine may have one")
	}
	t.Setenv("GESSO_CACHE", t.TempDir())
	code, _, stderr := command(t, nil, small("--model", checkpoint, "--device", "tpu", "x")...)
	if code != exitFailed || !strings.Contains(stderr, "no TPU on this machine") || strings.Count(strings.TrimSpace(stderr), "\n") > 1 {
		t.Errorf("exit %d: %q", code, stderr)
	}
}

func TestDevicesJSON(t *testing.T) {
	t.Setenv("GESSO_CACHE", t.TempDir())
	code, stdout, stderr := command(t, nil, "devices", "--json")
	var all []struct {
		Name    string `json:"name"`
		Devices []struct {
			Device string `json:"device"`
			Kind   string `json:"kind"`
		} `json:"devices"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(stdout), &all); code != exitOK || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	for _, p := range all {
		if (p.Error == "") != (len(p.Devices) > 0) || p.Name == "cpu" && (len(p.Devices) != 1 || p.Devices[0].Device != "cpu:0" || p.Devices[0].Kind == "") {
			t.Errorf("%+v", p)
		}
	}
	if len(all) < 4 {
		t.Errorf("only %d platforms", len(all))
	}
}
