package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Import copies the programs of another folder of the same form, such as a bundle that was compiled elsewhere, and returns
// how many there are. A folder without programs is an error; so are damaged or renamed programs, when the others are copied.
func (c *Cache) Import(dir string) (int, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s: no such folder: expected one that gesso compile --output has written", dir)
	}
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return 0, err
	}
	n, bad, badName := 0, 0, ""
	for _, f := range files {
		key, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return n, err
		}
		e, err := parse(b)
		if err != nil || e.Key != key {
			bad++
			badName = f.Name()
			continue
		}
		if err := c.put(e); err != nil {
			return n, err
		}
		n++
	}
	switch {
	case bad > 0:
		return n, fmt.Errorf("%s: %d of %d programs are damaged or renamed, such as %s: copy the bundle again", dir, bad, n+bad, badName)
	case n == 0:
		return 0, fmt.Errorf("%s: no programs (*%s): expected a folder that gesso compile --output has written", dir, suffix)
	}
	return n, nil
}
