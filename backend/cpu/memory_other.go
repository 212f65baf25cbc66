//go:build !linux

package cpu

import "unsafe"

// maxBlock is where a request must be a mistake: Go memory cannot report that there is not enough.
const maxBlock = 1 << 40

// mapMemory takes Go memory: a []uint64, so that it is aligned and free of pointers.
func mapMemory(size, _ int) ([]byte, error) {
	w := make([]uint64, size/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), size), nil
}

// reserveMemory returns nil: Go memory can't be reserved.
func reserveMemory() []byte { return nil }

func discardMemory([]byte) {}

func unmapMemory([]byte) {}

func processorName() string { return "CPU" }

func physicalMemory() int64 { return 0 }
