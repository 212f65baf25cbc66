package pjrt_test

import (
	"os"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/backendtest"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

func open(t testing.TB, path string, o pjrt.Options) *pjrt.Client {
	t.Helper()
	if o.Name == "" {
		o.Name = "xla-cpu"
	}
	c, err := pjrt.New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBackend runs the table that all backends pass on each of XLA's CPU plugins.
//
// It compiles thousands of programs on three plugins, which takes minutes, so it runs on demand.
func TestBackend(t *testing.T) {
	if os.Getenv("GESSO_TEST_PLUGINS") != "1" {
		t.Skip("takes minutes; GESSO_TEST_PLUGINS=1 runs it")
	}
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		backendtest.Run(t, func(t *testing.T) backend.Client {
			return open(t, path, pjrt.Options{Flags: map[string]any{"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": true}})
		})
	})
}
