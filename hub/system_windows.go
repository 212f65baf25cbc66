package hub

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// processExists reports whether a process of that number runs.
func processExists(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer windows.CloseHandle(h)
	var code uint32
	const stillActive = 259
	return windows.GetExitCodeProcess(h, &code) == nil && code == stillActive
}

// freeSpace returns the bytes that this user can still write below dir.
func freeSpace(dir string) (int64, error) {
	p, err := windows.UTF16PtrFromString(filepath.Clean(dir))
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(p, &free, nil, nil)
	return int64(free), err
}

// outOfSpace reports whether a write failed for want of room.
func outOfSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// tooLarge reports whether the file system can't hold a file of this size.
func tooLarge(err error) bool { return errors.Is(err, windows.ERROR_FILE_TOO_LARGE) }

// factsOf would have to open the file to know more.
func factsOf(info fs.FileInfo) fileFacts { return fileFacts{links: 1, allocated: info.Size()} }
