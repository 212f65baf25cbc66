package diskcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// errLocked says that another process, or another goroutine, has the lock.
var errLocked = errors.New("locked")

// Waiting for a lock looks again after the first of these, then after twice that, up to the second.
const (
	firstWait = time.Millisecond
	lastWait  = 50 * time.Millisecond
)

// lock waits until nobody else compiles key. The system drops the lock of a process that dies.
func (c *Cache) lock(ctx context.Context, key string) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil { // programs are loaded as code: nobody else may write them
		return nil, err
	}
	path := filepath.Join(c.dir, key+lockSuffix)
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		unlock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// tryLock takes the lock at path if it is free. unlock removes the file.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, err
	}
	// Who had the lock before may have removed the file between our opening and locking it.
	mine, err1 := f.Stat()
	there, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, errLocked
	}
	return func() {
		os.Remove(path)
		f.Close()
	}, nil
}
