package plugintest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

//go:embed fake.c.txt
var source string

// The faults of a Fake.
const (
	CrashOnLoad   = "CRASH_ON_LOAD"   // GetPjrtApi aborts
	NoTable       = "NO_TABLE"        // GetPjrtApi returns nothing
	TooOld        = "TOO_OLD"         // PJRT 0.50
	OtherMajor    = "OTHER_MAJOR"     // PJRT 1.0
	ShortTable    = "SHORT_TABLE"     // a table without the functions that its version has
	CrashOnInit   = "CRASH_ON_INIT"   // PJRT_Plugin_Initialize aborts, with the kind of message that XLA prints
	SignalOnInit  = "SIGNAL_ON_INIT"  // PJRT_Plugin_Initialize reads address 0
	ErrorOnInit   = "ERROR_ON_INIT"   // PJRT_Plugin_Initialize returns an error, as libtpu does when another process has the chips
	HangOnInit    = "HANG_ON_INIT"    // PJRT_Plugin_Initialize never returns
	NoDevices     = "NO_DEVICES"      // no fault: it compiles for any topology, and has no devices; see CrashOn
	HangOnCompile = "HANG_ON_COMPILE" // PJRT_Compile never returns
	WrapsAnother  = "WRAPS"           // a real plugin, whose functions fail as environment variables say; see Wrap
	faultVariable = "GESSO_TEST_FAIL" // names a function that a wrapping plugin lets fail
)

// Fake builds a shared library with a fault, by the C compiler of this machine. Without one the test is skipped, or fails
// if GESSO_REQUIRE_PLUGINS=1.
func Fake(t testing.TB, fault string, defines ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		if os.Getenv("GESSO_REQUIRE_PLUGINS") == "1" {
			t.Fatal("the faulty plugins of the tests need a C compiler, cc")
		}
		t.Skip("no C compiler to build a faulty plugin with")
	}
	dir := t.TempDir()
	c, so := filepath.Join(dir, "fake.c"), filepath.Join(dir, "fake.so")
	if err := os.WriteFile(c, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-O1", "-D" + fault + "=1", "-o", so, c, "-ldl"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return so
}

// CrashOn, given to Fake, makes PJRT_Compile abort the process for programs whose text has the word.
func CrashOn(word string) string { return `CRASH_ON_COMPILE="` + word + `"` }

// Wrap builds a plugin around the one at path. Fail lets its functions fail.
func Wrap(t testing.TB, path string) string {
	t.Helper()
	return Fake(t, WrapsAnother, `REAL="`+path+`"`)
}

// Fail lets a function of wrapping plugins ("Execute", "Compile", "Upload") fail for want of memory until the test ends
// or it is called with "". Their devices then have 1,000,000 bytes, of which 600,000 are in use.
func Fail(t testing.TB, function string) {
	t.Helper()
	t.Setenv(faultVariable, function)
}
