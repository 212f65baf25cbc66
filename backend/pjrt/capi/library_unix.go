//go:build (linux || darwin) && (amd64 || arm64)

package capi

import (
	"fmt"
	"os"

	"github.com/ebitengine/purego"
)

// openLibrary loads a shared library and looks a symbol up.
func openLibrary(path, symbol string) (uintptr, error) {
	if _, err := os.Stat(path); err != nil {
		return 0, fmt.Errorf("plugin: %w", err) // the loader's own message would name its search path
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("plugin %s: %w", path, err)
	}
	f, err := purego.Dlsym(lib, symbol)
	if err != nil {
		return 0, fmt.Errorf("%s is not a PJRT plugin: it has no function %s", path, symbol)
	}
	return f, nil
}

// Preload makes a library's symbols available to plugins that are loaded later without linking to it.
func Preload(path string) error {
	if _, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return fmt.Errorf("library %s: %w", path, err)
	}
	return nil
}
