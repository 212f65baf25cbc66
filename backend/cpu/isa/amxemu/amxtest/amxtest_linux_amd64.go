// Package amxtest runs a package's own tests of the AMX level on machines that have only the levels below it.
package amxtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu"
)

// OnlyAMX is set in the environment of the tests that Run runs: other levels need not be tested again there.
const OnlyAMX = "GESSO_TEST_ONLY_AMX"

// Run runs the tests of the calling program that match pattern, in a process with AMX emulated, and fails if they do, or if they
// take fewer instructions of AMX than least. It skips where AMX itself is there, and where the rest of the level isn't.
func Run(t *testing.T, pattern string, least int) {
	t.Helper()
	levels := isa.Available()
	if slices.Contains(levels, isa.AMX) {
		t.Skip("the other tests use AMX itself, or run under this one")
	}
	if !slices.Contains(levels, isa.AVX512BF16) {
		t.Skip("the rest of the level needs AVX-512")
	}
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	env := append(os.Environ(), OnlyAMX+"=1")
	res, err := amxemu.Run(exe, []string{"-test.run", pattern, "-test.v"}, &os.ProcAttr{Env: env, Files: []*os.File{nil, log, log}})
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("tracing is not allowed here: %v", err)
	}
	out, readErr := os.ReadFile(log.Name())
	if err != nil || readErr != nil || res.ExitCode != 0 {
		t.Fatalf("exit code %d, %v, %v\n%s", res.ExitCode, err, readErr, out)
	}
	t.Logf("%d instructions", res.Instructions)
	if res.Instructions < least {
		t.Errorf("only %d AMX instructions: the tests did not use them", res.Instructions)
	}
}
