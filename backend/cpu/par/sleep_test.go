package par

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// asleep returns how many goroutines wait for a channel in the named function itself, rather than in what it calls.
func asleep(function string) int {
	buf := make([]byte, 1<<20)
	n := 0
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		head, rest, _ := strings.Cut(g, "\n")
		top, _, _ := strings.Cut(rest, "\n")
		if strings.Contains(head, "[chan receive") && strings.Contains(top, function) {
			n++
		}
	}
	return n
}

func waitAsleep(t *testing.T, function string, want int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		n := asleep(function)
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d sleep in %s, want %d", n, function, want)
		}
	}
}

// TestWorkersSleep: a worker without a job sleeps until it gets one, a job wakes no more workers than it has pieces for,
// and a caller whose pieces are done sleeps until the others' are.
func TestWorkersSleep(t *testing.T) {
	const worker, caller = "/par.(*Pool).worker(", "/par.(*Pool).For("
	waitAsleep(t, worker, 0) // of earlier tests
	p := New(4)
	defer p.Close()
	waitAsleep(t, worker, 3)
	for range 3 {
		met, last, done := make(chan bool), make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			p.For(2, 1, func(w, _, _ int) {
				if w == 0 {
					<-met
					return
				}
				met <- true
				<-last
			})
		}()
		waitAsleep(t, caller, 1)
		waitAsleep(t, worker, 2)
		close(last)
		<-done
		waitAsleep(t, worker, 3)
	}
}
