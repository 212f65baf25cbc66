// Package peak measures how many floating-point operations a second a machine can do at all: a loop of independent
// multiply-adds on registers, on all threads at once. Benchmarks are told as a part of it.
//
//	flops := peak.Measure(isa.Detect(), tensor.BF16, 0)
package peak

import (
	"runtime"
	"sync"
	"time"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// loop is a way to multiply and add: run does rounds of flops operations each.
type loop struct {
	flops float64
	run   func(rounds int)
}

// All threads work at once, each in short tries of which its best counts: other programs only ever make a try slower.
const (
	tryTime = 4 * time.Millisecond
	tries   = 60
)

// Measure returns operations a second, a multiply-add being two, of the best instruction that level has for operands of
// dtype d (I8: bytes with 32-bit sums); threads 0 means all. Types without an instruction of their own compute in float32.
func Measure(level isa.Level, d tensor.DType, threads int) float64 {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	l := choose(level, d)
	rates := make([]float64, threads)
	var wg sync.WaitGroup
	for i := range rates {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			rates[i] = l.best()
		})
	}
	wg.Wait()
	total := 0.0
	for _, r := range rates {
		total += r
	}
	return total
}

// best returns the operations a second of the calling thread.
func (l *loop) best() float64 {
	rounds := 1 << 10
	for {
		start := time.Now()
		l.run(rounds)
		if e := time.Since(start); e > tryTime/8 {
			rounds = max(1, int(float64(rounds)*tryTime.Seconds()/e.Seconds()))
			break
		}
		rounds *= 2
	}
	best := 0.0
	for range tries {
		start := time.Now()
		l.run(rounds)
		best = max(best, float64(rounds)*l.flops/time.Since(start).Seconds())
	}
	return best
}

// portableFlops is what one round of plain Go does.
const portableFlops = 2 * 8

func portable(rounds int) {
	var a, b, c, d, e, f, g, h float32
	x, y := float32(0.5), float32(1)
	for range rounds {
		a, b, c, d = a*x+y, b*x+y, c*x+y, d*x+y
		e, f, g, h = e*x+y, f*x+y, g*x+y, h*x+y
	}
	if a+b+c+d+e+f+g+h < 0 { // never: keeps the compiler from dropping the loop
		panic("peak: a sum of positive numbers is negative")
	}
}
