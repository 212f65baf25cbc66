package pjrt_test

import (
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
func TestBackend(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		backendtest.Run(t, func(t *testing.T) backend.Client { return open(t, path, pjrt.Options{}) })
	})
}
