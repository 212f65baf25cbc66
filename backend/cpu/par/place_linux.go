package par

import "golang.org/x/sys/unix"

// place keeps the calling thread on the given processors. It is a wish: where they are forbidden by now, the thread stays
// where it may be.
func place(cpus []int) {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	_ = unix.SchedSetaffinity(0, &set)
}
