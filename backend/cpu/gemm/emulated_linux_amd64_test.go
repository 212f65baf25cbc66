package gemm

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

// TestEmulatedAMX runs this package's tests of the AMX level, where the machine has only the levels below it.
func TestEmulatedAMX(t *testing.T) {
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
	res, err := amxemu.Run(exe, []string{"-test.run", "/^amx$", "-test.v"}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, log, log}})
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("tracing is not allowed here: %v", err)
	}
	out, readErr := os.ReadFile(log.Name())
	if err != nil || readErr != nil || res.ExitCode != 0 {
		t.Fatalf("exit code %d, %v, %v\n%s", res.ExitCode, err, readErr, out)
	}
	if res.Instructions < 10_000 {
		t.Errorf("only %d AMX instructions: the tests did not use them", res.Instructions)
	}
}
