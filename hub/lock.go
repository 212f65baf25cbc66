package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockBlob holds the lock that huggingface_hub also takes while it makes a blob, so that no two processes fetch the
// same one. Some network file systems grant it to everybody, or have no locks: nothing but double work depends on it.
func (s *session) lockBlob(ctx context.Context, ref Ref, etag, name string) (unlock func(), err error) {
	path := s.store.lock(ref, etag)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l := flock.New(path, flock.SetPermissions(0o664))
	told := false
	for {
		ok, err := l.TryLock()
		if err != nil {
			s.Warn(fmt.Sprintf("%s can't be locked (%v): should another process fetch the same file now, it is fetched twice", path, err))
			return func() {}, nil
		}
		if ok {
			return func() { l.Close() }, nil
		}
		if !told {
			told = true
			s.report.wait(fmt.Sprintf("another process is fetching %s: waiting for it", name))
		}
		// Real time, whatever the clock: what we wait for is another process.
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
