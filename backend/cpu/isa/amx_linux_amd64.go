package isa

import "golang.org/x/sys/unix"

// permitTiles asks Linux for the state of tiles (ARCH_REQ_XCOMP_PERM, XTILEDATA); without it the first tile instruction is
// a fault. Kernels before 5.16 refuse.
func permitTiles() bool {
	const request, tileData = 0x1023, 18
	_, _, e := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, tileData, 0)
	return e == 0
}
