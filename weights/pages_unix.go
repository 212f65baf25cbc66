//go:build linux || darwin || freebsd

package weights

import "golang.org/x/sys/unix"

// dontNeed drops the pages of a read-only shared mapping; b starts on a page. It is advice: a failure costs only memory.
func dontNeed(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
