package pjrt_test

import (
	"os"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/backendtest"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// TestBackend runs the table that all backends pass on each of XLA's CPU plugins, and compares each program's results with
// those of the CPU backend.
//
// It compiles thousands of programs for each plugin, which takes minutes, so it runs on demand.
func TestBackend(t *testing.T) {
	if os.Getenv("GESSO_TEST_PLUGINS") != "1" {
		t.Skip("takes minutes; GESSO_TEST_PLUGINS=1 runs it")
	}
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		o := pjrt.Options{
			Name: "xla-cpu", Cache: diskcache.New(t.TempDir(), 0), // what the second table compiles is there already
			// Compile fast: that a faster program computes the same is the compiler's business.
			Flags: map[string]any{"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": true},
		}
		open := func(t *testing.T) backend.Client {
			c, err := pjrt.New(path, o)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		backendtest.Run(t, open)
		t.Run("agrees with cpu", func(t *testing.T) {
			backendtest.RunAgree(t, func(t *testing.T) backend.Client {
				c, err := cpu.New(cpu.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}, open)
		})
	})
}
