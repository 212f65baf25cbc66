package cpu

import (
	"bufio"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxBlock is the address space; the system refuses what is too much for it.
const maxBlock = 1 << 47

// mapMemory returns size bytes, of which only the first used ones are to be touched.
func mapMemory(size, used int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	if huge := used &^ (hugeLimit - 1); huge > 0 { // not the last piece: a huge page there would make what is unused resident
		_ = unix.Madvise(mem[:huge], unix.MADV_HUGEPAGE) // a wish: a kernel without huge pages may refuse
	}
	return mem, nil
}

// reserveMemory returns addresses for as much as the machine has memory, which they get when they are touched, if possible in
// huge pages; nil where the system grants no more addresses than there is memory for.
func reserveMemory() []byte {
	mem, err := unix.Mmap(-1, 0, int(physicalMemory()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	return mem
}

// discardMemory gives the memory of a part of what was reserved back to the system; the addresses stay.
func discardMemory(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTNEED) }

func unmapMemory(mem []byte) { _ = unix.Munmap(mem) }

// processorName returns the model name of the first processor.
func processorName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "CPU"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "CPU"
}

func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
