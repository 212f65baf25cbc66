package platform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// Every way in which a library can be bad is an error of one line that names the file and what is wrong with it, and the
// process that asked lives on.
func TestFaultyPlugins(t *testing.T) {
	for fault, text := range map[string]string{
		plugintest.CrashOnLoad:  "crashed the process that tried it: exit status 2: SIGABRT: abort",
		plugintest.CrashOnInit:  "crashed the process that tried it: exit status 2: F0000 00:00:00.000000 1 fake.c:1] Check failed: devices > 0",
		plugintest.SignalOnInit: "crashed the process that tried it",
		plugintest.NoTable:      "GetPjrtApi returned nothing",
		plugintest.TooOld:       "PJRT 0.50 is too old, expected 0.81 or later",
		plugintest.OtherMajor:   "PJRT 1.100, expected major version 0",
		plugintest.ShortTable:   "with a table of 120 bytes",
		plugintest.ErrorOnInit:  "PJRT_Plugin_Initialize: aborted: Internal error when accessing libtpu multi-process lockfile",
	} {
		t.Run(fault, func(t *testing.T) {
			so := plugintest.Fake(t, fault)
			f := machine(t, "GESSO_PLUGIN_NPU="+so)
			f.Probe = probe
			_, _, err := f.Open(t.Context(), "npu")
			if err == nil {
				t.Fatal("it was opened")
			}
			if got := err.Error(); !strings.Contains(got, text) || !strings.Contains(got, so) || strings.Contains(got, "\n") {
				t.Errorf("got %q, expected %q", got, text)
			}
			for _, s := range f.List(t.Context()) {
				if s.Name == "npu" && (s.Err == nil || len(s.Devices) > 0) {
					t.Errorf("List says %+v", s)
				}
			}
		})
	}
}

// What isn't a plugin at all.
func TestNotAPlugin(t *testing.T) {
	files := map[string]string{write(t, "text", t.TempDir(), "text.so"): "", filepath.Join(t.TempDir(), "none.so"): "no such file"}
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"} {
		if _, err := os.Stat(pattern); err == nil {
			files[pattern] = "GetPjrtApi"
			break
		}
	}
	for so, text := range files {
		f := machine(t, "GESSO_PLUGIN_NPU="+so)
		f.Probe = probe
		if _, _, err := f.Open(t.Context(), "npu"); err == nil || !strings.Contains(err.Error(), so) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, expected %q", so, err, text)
		}
	}
}

// Two processes and one TPU: the second is told who has it.
func TestTPUInUse(t *testing.T) {
	so := plugintest.Fake(t, plugintest.ErrorOnInit)
	f := machine(t, "GESSO_PLUGIN_TPU="+so)
	f.Probe = probe
	write(t, "0x1ae0\n", f.Root, "sys", "bus", "pci", "devices", "0000:00:05.0", "vendor")
	write(t, "0x006f\n", f.Root, "sys", "bus", "pci", "devices", "0000:00:05.0", "device")
	_, _, err := f.Open(t.Context(), "tpu")
	if err == nil || !strings.HasPrefix(err.Error(), "tpu: in use by another process: ") {
		t.Errorf("nobody to be seen: %v", err)
	}
	fd := filepath.Join(f.Root, "proc", "4711", "fd")
	write(t, "python3\n", f.Root, "proc", "4711", "comm")
	if err := os.MkdirAll(fd, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"0": "/dev/null", "1": "/dev/vfio/vfio", "2": "/tmp/libtpu_lockfile_of_mine"} {
		if err := os.Symlink(target, filepath.Join(fd, name)); err != nil {
			t.Fatal(err)
		}
	}
	if who := f.holder(); who != "" {
		t.Errorf("the holder is %q, nobody has a chip", who)
	}
	for _, target := range []string{"/dev/accel0", "/dev/vfio/3", "/tmp/libtpu_lockfile"} {
		link := filepath.Join(fd, "9")
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		_, _, err = f.Open(t.Context(), "tpu")
		if err == nil || !strings.HasPrefix(err.Error(), "tpu: in use by process 4711 (python3): ") || !strings.Contains(err.Error(), "lockfile") {
			t.Errorf("%s: %v", target, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// A machine without accelerators answers at once, whether or not there is a plugin, even if the plugin would hang.
func TestNoAcceleratorIsQuick(t *testing.T) {
	f := machine(t)
	f.Probe = func(ctx context.Context, _, _ string, env []string) (Info, error) {
		if env == nil {
			t.Error("a plugin was asked for devices that aren't there")
		}
		return Info{}, errors.New("looked")
	}
	for _, there := range []bool{false, true} {
		if there {
			write(t, "", f.CacheDir, "plugins", "tpu", "libtpu-1.so")
		}
		start := time.Now()
		_, _, err := f.Open(t.Context(), "tpu")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(err, ErrNoDevice) || !strings.HasPrefix(err.Error(), "no TPU on this machine") || strings.Contains(err.Error(), "libtpu-1.so") != there {
			t.Errorf("plugin there %v: %v", there, err)
		}
	}
}

// A plugin that never comes back is given up, with its process: soon where there is no chip, later where there is one.
func TestHangingPlugin(t *testing.T) {
	long, short := probeTimeout, lookTimeout
	t.Cleanup(func() { probeTimeout, lookTimeout = long, short })
	probeTimeout, lookTimeout = 400*time.Millisecond, 200*time.Millisecond
	so := plugintest.Fake(t, plugintest.HangOnInit)
	f := machine(t, "GESSO_PLUGIN_TPU="+so)
	f.Probe = probe
	for _, s := range f.List(t.Context()) {
		if s.Name == "tpu" && (!errors.Is(s.Err, ErrNoDevice) || s.Path != so) {
			t.Errorf("no chip: %+v", s)
		}
	}
	if _, err := f.examine(t.Context(), "tpu", so, withoutHardware("tpu")); err == nil || !strings.HasSuffix(err.Error(), "gave no answer within 200ms") {
		t.Errorf("no chip: %v", err)
	}
	write(t, "0x1ae0\n", f.Root, "sys", "bus", "pci", "devices", "0000:00:05.0", "vendor")
	write(t, "0x006f\n", f.Root, "sys", "bus", "pci", "devices", "0000:00:05.0", "device")
	if _, _, err := f.Open(t.Context(), "tpu"); err == nil || !strings.Contains(err.Error(), so) || !strings.HasSuffix(err.Error(), "gave no answer within 400ms") {
		t.Errorf("a chip: %v", err)
	}
}
