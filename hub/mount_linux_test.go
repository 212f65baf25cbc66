package hub

import "syscall"

// mountSmall puts an empty file system of 1 MiB at dir.
func mountSmall(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") }

func unmount(dir string) { syscall.Unmount(dir, syscall.MNT_DETACH) }
