//go:build unix

package hub

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processExists reports whether a process of that number runs.
func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// freeSpace returns the bytes that this user can still write below dir.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// outOfSpace reports whether a write failed for want of room.
func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// tooLarge reports whether the file system can't hold a file of this size.
func tooLarge(err error) bool { return errors.Is(err, syscall.EFBIG) }
