package diskcache

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The tests start this binary again as another process, which does what the variable says.
const childVariable = "DISKCACHE_TEST_CHILD"

func TestMain(m *testing.M) {
	dir, hang := strings.CutPrefix(os.Getenv(childVariable), "hang ")
	if dir == "" {
		os.Exit(m.Run())
	}
	k := Key{Program: []byte("shared")}
	hit, err := New(dir, 0).Get(context.Background(), k, func(*Entry) error { return nil }, func() (*Entry, error) {
		if hang {
			if tmp, err := os.CreateTemp(dir, tmpPrefix); err == nil { // as if killed while it writes, too
				fmt.Fprint(tmp, magic)
			}
			fmt.Println("compiling")
			time.Sleep(time.Hour)
		}
		time.Sleep(20 * time.Millisecond)
		return &Entry{Name: "shared", Data: []byte("program")}, nil
	})
	fmt.Println(hit, err)
}

func child(t *testing.T, value string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childVariable+"="+value)
	cmd.Stderr = os.Stderr
	return cmd
}

// Of processes that want one program at the same time one compiles it.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	for range 4 {
		cmd, out := child(t, dir), &strings.Builder{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	compiled := 0
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		switch strings.TrimSpace(outs[i].String()) {
		case "false <nil>":
			compiled++
		case "true <nil>":
		default:
			t.Errorf("a process says %s", outs[i])
		}
	}
	if compiled != 1 {
		t.Errorf("%d processes compiled", compiled)
	}
}

// A process killed while it compiles leaves no entry and no lock behind.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hang "+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "compiling\n" {
		t.Fatalf("%q, %v", line, err)
	}
	k := Key{Program: []byte("shared")}
	if _, err := tryLock(New(dir, 0).path(k.String())[:len(dir)+1+64] + lockSuffix); err != errLocked {
		t.Errorf("while it compiles the lock says %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c := New(dir, 0)
	if list, err := c.List(); err != nil || len(list) != 0 {
		t.Errorf("the folder lists %v, %v", list, err)
	}
	want(t, c, k, "program", false)
	want(t, c, k, "program", true)
	// What is left is swept when it has been there for long.
	c.now = func() time.Time { return time.Now().Add(2 * abandoned) }
	if _, err := c.List(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0].Name(), suffix) {
		t.Errorf("left: %v, %v", left, err)
	}
}
