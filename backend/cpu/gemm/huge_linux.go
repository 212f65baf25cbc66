package gemm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// adviseHuge wishes for huge pages where whole ones fit into w, which nobody has written to yet. Rows that are read side by
// side then need few translations, and don't compete for the same sets of the second cache.
func adviseHuge(w []uint32) {
	b := wordBytes(w)
	if len(b) < 2*hugePage {
		return
	}
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (hugePage - 1))
	_ = unix.Madvise(b[skip:skip+(len(b)-skip)&^(hugePage-1)], unix.MADV_HUGEPAGE)
}
