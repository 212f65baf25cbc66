//go:build !unix && !windows

package diskcache

import (
	"errors"
	"os"
)

// Without locks programs are compiled as if there were no cache.
func lockFile(*os.File) error { return errors.ErrUnsupported }
