// Package shareddata finds the full set of reference data that lies beside a developer's checkout, for tests that run
// over more than the trimmed set in testdata.
package shareddata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the path of elem inside the shared folder beside the repository. Where it does not exist the test is
// skipped, or fails if GESSO_REQUIRE_SHARED=1 (continuous integration sets it).
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	dir := filepath.Join(append([]string{filepath.Dir(root), "shared"}, elem...)...)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("GESSO_REQUIRE_SHARED") == "1" {
			t.Fatalf("the reference data is required but absent: %v", err)
		}
		t.Skipf("no reference data beside the checkout: %v", err)
	}
	return dir
}
