//go:build !((linux || darwin) && (amd64 || arm64))

package capi

import (
	"errors"
	"fmt"
	"runtime"
)

func openLibrary(path, _ string) (uintptr, error) {
	return 0, fmt.Errorf("plugin %s: %w", path, errPlatform)
}

// Preload is not supported here.
func Preload(path string) error { return fmt.Errorf("library %s: %w", path, errPlatform) }

var errPlatform = fmt.Errorf("PJRT plugins on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
