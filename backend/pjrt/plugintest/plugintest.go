// Package plugintest finds the PJRT plugins that tests run on.
//
// Plugins are not part of the repository. They are looked for in the environment variable GESSO_PLUGIN_XLA_CPU (one
// path), then as *.so in plugins/xla-cpu of Gesso's cache folder ($XDG_CACHE_HOME/gesso, normally ~/.cache/gesso).
// gesso plugin add puts them there. [Fake] and [Wrap] build plugins with faults from a C file, where there is a compiler.
package plugintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// XLACPU runs fn as a subtest for each of XLA's CPU plugins on this machine. Where there is none the test is skipped, or
// fails if GESSO_REQUIRE_PLUGINS=1.
func XLACPU(t *testing.T, fn func(t *testing.T, path string)) {
	t.Helper()
	for _, path := range find(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".so"), func(t *testing.T) { fn(t, path) })
	}
}

// Newest returns the path of one of XLA's CPU plugins: the first in alphabetical order.
func Newest(t testing.TB) string {
	t.Helper()
	paths := find(t)
	for _, p := range paths {
		if strings.Contains(p, "lammps") {
			return p
		}
	}
	return paths[0]
}

// TPU returns the path of libtpu, from GESSO_PLUGIN_TPU or plugins/tpu of the cache folder, after setting the environment
// in which it compiles without a TPU. The test is skipped where it is absent.
func TPU(t testing.TB) string {
	t.Helper()
	path := os.Getenv("GESSO_PLUGIN_TPU")
	if cache, err := os.UserCacheDir(); err == nil && path == "" {
		added, _ := filepath.Glob(filepath.Join(cache, "gesso", "plugins", "tpu", "*.so"))
		if len(added) == 0 {
			t.Skip("no libtpu: gesso plugin add brings one")
		}
		path = added[len(added)-1]
	}
	for k, v := range map[string]string{
		"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_LOG_DIR": "disabled", "TPU_MIN_LOG_LEVEL": "3",
		"TPU_ACCELERATOR_TYPE": "v6e-1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
	} {
		os.Setenv(k, v)
	}
	return path
}

func find(t testing.TB) []string {
	t.Helper()
	os.Setenv("TF_CPP_MIN_LOG_LEVEL", "2") // XLA's remarks would drown a failure; it reads this when it is loaded
	if path := os.Getenv("GESSO_PLUGIN_XLA_CPU"); path != "" {
		return []string{path}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(cache, "gesso", "plugins", "xla-cpu")
	paths, err := filepath.Glob(filepath.Join(dir, "*.so"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		if os.Getenv("GESSO_REQUIRE_PLUGINS") == "1" {
			t.Fatalf("XLA's CPU plugin is required, but GESSO_PLUGIN_XLA_CPU is not set and %s has none", dir)
		}
		t.Skipf("no plugin in %s", dir)
	}
	return paths
}
