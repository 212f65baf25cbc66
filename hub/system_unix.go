//go:build unix

package hub

import (
	"errors"
	"io/fs"
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

// factsOf returns what the system tells about a file besides its size.
func factsOf(info fs.FileInfo) fileFacts {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileFacts{links: 1, allocated: info.Size()}
	}
	return fileFacts{id: fileID{uint64(st.Dev), st.Ino}, links: uint64(st.Nlink), allocated: st.Blocks * 512}
}
