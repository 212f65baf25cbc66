package main

import "syscall"

// mountTiny mounts a file system of 16 kB on dir.
func mountTiny(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k") }

func unmount(dir string) { _ = syscall.Unmount(dir, 0) }
