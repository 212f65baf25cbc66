package par

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThreadsFollowAffinity: a process that may use one processor of several gets one thread. The runtime reads the mask
// as it starts, so the test runs itself again.
func TestThreadsFollowAffinity(t *testing.T) {
	if os.Getenv("GESSO_TEST_PRINT_THREADS") != "" {
		fmt.Printf("threads=%d\n", Threads())
		return
	}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("this process may use one processor only")
	}
	var one unix.CPUSet
	for i := 0; one.Count() == 0; i++ {
		if all.IsSet(i) {
			one.Set(i)
		}
	}
	runtime.LockOSThread() // a child has the mask of the thread that starts it
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
	}()
	child := exec.Command(os.Args[0], "-test.run=^TestThreadsFollowAffinity$")
	child.Env = append(os.Environ(), "GESSO_TEST_PRINT_THREADS=1", "GOMAXPROCS=")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "threads=1\n") {
		t.Errorf("with one processor: %v, %s", err, out)
	}
}
