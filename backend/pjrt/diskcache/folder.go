package diskcache

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scanEvery is how many entries are written between two looks at the whole folder, to which other processes write too.
const scanEvery = 32

// abandoned is how old an unfinished entry or a lock must be to be taken for that of a process which was killed.
const abandoned = time.Hour

// file is an entry as the folder shows it.
type file struct {
	path string
	size int64
	used time.Time
}

// files lists the entries, and removes what killed processes have left.
func (c *Cache) files() ([]file, error) {
	list, err := os.ReadDir(c.dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []file
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(c.dir, d.Name())
		old := c.now().Sub(info.ModTime()) > abandoned
		switch {
		case strings.HasSuffix(d.Name(), suffix):
			all = append(all, file{path, info.Size(), info.ModTime()})
		case strings.HasPrefix(d.Name(), tmpPrefix) && old:
			os.Remove(path)
		case strings.HasSuffix(d.Name(), lockSuffix) && old:
			if unlock, err := tryLock(path); err == nil {
				unlock()
			}
		}
	}
	return all, nil
}

// grown counts n more bytes, and evicts when the folder is over its limit.
func (c *Cache) grown(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += n
	if c.puts++; c.puts > 1 && c.puts < scanEvery && c.size <= c.limit {
		return
	}
	c.puts = 1
	all, err := c.files()
	if err != nil {
		return
	}
	c.size = 0
	for _, f := range all {
		c.size += f.size
	}
	if c.size <= c.limit {
		return
	}
	slices.SortFunc(all, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range all {
		if c.size <= c.limit-c.limit/10 { // some room, so that not every entry evicts one
			break
		}
		if os.Remove(f.path) == nil {
			c.size -= f.size
		}
	}
}

// List returns the entries without their data, those that were used last first. What is no good is left out.
func (c *Cache) List() ([]Entry, error) {
	all, err := c.files()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(all))
	for _, f := range all {
		r, err := os.Open(f.path)
		if err != nil {
			continue
		}
		e, _, err := parseHeader(r, f.size)
		r.Close()
		if err != nil || c.path(e.Key) != f.path {
			continue
		}
		e.Size, e.Used = f.size, f.used
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	return entries, nil
}

// minPrefix is the shortest beginning of a key that Remove takes.
const minPrefix = 4

// Remove removes the one entry whose key begins with prefix, and returns its size.
func (c *Cache) Remove(prefix string) (int64, error) {
	if len(prefix) < minPrefix {
		return 0, fmt.Errorf("key %q: expected at least %d digits", prefix, minPrefix)
	}
	all, err := c.files()
	if err != nil {
		return 0, err
	}
	var found []file
	for _, f := range all {
		if strings.HasPrefix(filepath.Base(f.path), prefix) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("no program with key %s in %s", prefix, c.dir)
	case 1:
		return found[0].size, os.Remove(found[0].path)
	}
	return 0, fmt.Errorf("key %s is not unique: %d programs begin with it", prefix, len(found))
}

// Clear removes all entries, damaged ones too, and returns how many there were and their size.
func (c *Cache) Clear() (n int, bytes int64, err error) {
	all, err := c.files()
	if err != nil {
		return 0, 0, err
	}
	for _, f := range all {
		if rerr := os.Remove(f.path); rerr != nil && !os.IsNotExist(rerr) {
			err = rerr
			continue
		}
		n++
		bytes += f.size
	}
	return n, bytes, err
}
