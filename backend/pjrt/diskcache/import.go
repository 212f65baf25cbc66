package diskcache

import (
	"os"
	"path/filepath"
	"strings"
)

// Import copies the programs of another folder of the same form, such as a bundle that was compiled elsewhere. Damaged ones
// are left out; the number of programs that are now there is returned.
func (c *Cache) Import(dir string) (int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return 0, err
	}
	n := 0
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
			continue
		}
		c.put(e)
		if _, err := os.Stat(c.path(key)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
