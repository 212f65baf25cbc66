package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
)

// hardware returns an error if the platform's devices are not in this machine. Only buses and device files are looked at.
func (f *Finder) hardware(name string) error {
	switch name {
	case "tpu":
		if f.tpuChips() == 0 {
			return absent("TPU")
		}
	case "cuda":
		for _, p := range []string{"dev/nvidia0", "dev/nvidiactl", "dev/dxg"} {
			if _, err := os.Stat(filepath.Join(f.Root, filepath.FromSlash(p))); err == nil {
				return nil
			}
		}
		return absent("NVIDIA GPU")
	}
	return nil
}

// absent is the error of hardware that this machine doesn't have.
type absent string

func (a absent) Error() string        { return "no " + string(a) + " on this machine" }
func (a absent) Is(target error) bool { return target == ErrNoDevice }

// PCI ids of Google's TPUs, from v2 to the eighth generation, as jax and torch_xla know them.
const googleVendor = "0x1ae0"

var tpuIDs = []string{"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076", "0x0083", "0x007c"}

// tpuChips counts the TPU chips of this machine.
func (f *Finder) tpuChips() int {
	n := 0
	vendors, _ := filepath.Glob(filepath.Join(f.Root, "sys", "bus", "pci", "devices", "*", "vendor"))
	for _, v := range vendors {
		vendor, err := os.ReadFile(v)
		if err != nil || strings.TrimSpace(string(vendor)) != googleVendor {
			continue
		}
		id, err := os.ReadFile(filepath.Join(filepath.Dir(v), "device"))
		if err == nil && slices.Contains(tpuIDs, strings.TrimSpace(string(id))) {
			n++
		}
	}
	if n == 0 { // a container may show the device files only
		accel, _ := filepath.Glob(filepath.Join(f.Root, "dev", "accel[0-9]*"))
		n = len(accel)
	}
	return n
}

// withoutHardware is the environment in which a plugin is looked at on a machine without its devices: libtpu would
// otherwise ask a metadata server for minutes, write log files, and claim the chip that isn't there.
func withoutHardware(name string) []string {
	if name != "tpu" {
		return nil
	}
	return []string{
		"TPU_SKIP_MDS_QUERY=1", "ALLOW_MULTIPLE_LIBTPU_LOAD=1", "TPU_LOG_DIR=disabled", "TPU_MIN_LOG_LEVEL=3", "TPU_STDERR_LOG_LEVEL=3",
		"TPU_ACCELERATOR_TYPE=v6e-1", "TPU_WORKER_HOSTNAMES=localhost", "TPU_WORKER_ID=0",
	}
}

// nvidia are the libraries that XLA's CUDA plugin expects to be there, in the order of their dependencies.
var nvidia = []string{
	"libcudart.so.1?", "libnvrtc.so.1?", "libnvJitLink.so.1?", "libcublasLt.so.1?", "libcublas.so.1?", "libcupti.so.1?", "libcusparse.so.1?",
	"libcusolver.so.1?", "libcufft.so.1?", "libcudnn.so.9", "libnccl.so.2",
}

// prepare makes ready what a plugin needs before it is loaded in this process.
func (f *Finder) prepare(name, path string) error {
	const logLevel = "TF_CPP_MIN_LOG_LEVEL" // XLA's; without it, each client writes remarks to stderr
	if name != "tpu" && f.getenv(logLevel) == "" {
		if err := f.Setenv(logLevel, "3"); err != nil { // errors too: they come back as errors
			return err
		}
	}
	if name != "cuda" {
		return nil
	}
	// NVIDIA's packages lie beside the plugin's, jax_plugins/xla_cuda13/x.so; for a plugin elsewhere, in any Python.
	sites := append([]string{filepath.Dir(filepath.Dir(filepath.Dir(path)))}, f.sitePackages()...)
	site := sites[0]
	for _, s := range sites {
		if found, _ := filepath.Glob(filepath.Join(s, "nvidia", "*", "lib")); len(found) > 0 {
			site = s
			break
		}
	}
	for _, lib := range nvidia {
		for _, dir := range []string{filepath.Join(site, "nvidia", "*", "lib"), filepath.Join(site, "nvidia", "*", "lib", "x86_64-linux-gnu")} {
			found, _ := filepath.Glob(filepath.Join(dir, lib))
			for _, l := range found {
				if err := capi.Preload(l); err != nil {
					return fmt.Errorf("cuda: %w", err)
				}
			}
		}
	}
	if dirs, _ := filepath.Glob(filepath.Join(site, "nvidia", "*", "nvvm")); len(dirs) > 0 && f.getenv("XLA_FLAGS") == "" {
		return f.Setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir="+filepath.Dir(dirs[0])) // where libdevice lies
	}
	return nil
}
