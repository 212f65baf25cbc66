package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/gesso-go/gesso/hub/xet"
)

// digest follows a partial file while it grows and returns the digest of the whole, as soon as done is closed and all
// is read. It starts again when the file does.
func (p *partial) digest(ctx context.Context, start func() hash.Hash, done <-chan struct{}) (string, error) {
	buf := make([]byte, 256<<10)
	h, at, epoch := start(), int64(0), 0
	for {
		prefix, now := p.state()
		if now != epoch {
			h, at, epoch = start(), 0, now
		}
		if at < prefix {
			n, err := p.file.ReadAt(buf[:min(int64(len(buf)), prefix-at)], at)
			h.Write(buf[:n])
			at += int64(n)
			if err != nil && err != io.EOF {
				return "", err
			}
			if n > 0 {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-done:
			if prefix, now := p.state(); now == epoch && at >= prefix {
				return hex.EncodeToString(h.Sum(nil)), nil
			}
		case <-p.grown:
		}
	}
}

// digester returns the hash that the etag is of, or nil if the etag is no hash of the plain content.
func digester(e Entry) func() hash.Hash {
	switch {
	case e.SHA256 != "":
		return sha256.New
	case commitName.MatchString(e.Git) && e.Size >= 0:
		return func() hash.Hash {
			h := sha1.New()
			fmt.Fprintf(h, "blob %d\x00", e.Size)
			return h
		}
	}
	return nil
}

// verify compares what was downloaded with what the Hub announced. It returns an ErrChecksum error if it isn't that.
func (p *partial) verify(e Entry, digest string) error {
	mismatch := func(what, got, want string) error {
		return errorf(ErrChecksum, nil, "%s: %s is %s, expected %s", e.Path, what, got, want)
	}
	total := p.total()
	if e.Size >= 0 && total != e.Size {
		return mismatch("length", fmt.Sprint(total), fmt.Sprint(e.Size))
	}
	verified := false
	switch {
	case e.SHA256 != "":
		if digest != e.SHA256 {
			return mismatch("sha256", digest, e.SHA256)
		}
		verified = true
	case commitName.MatchString(e.Git):
		if digest == "" { // the length wasn't known while it came
			var err error
			if digest, err = gitHash(p.path); err != nil {
				return err
			}
		}
		if digest != e.Git {
			return mismatch("git hash", digest, e.Git)
		}
		verified = true
	}
	if e.Xet == "" {
		return nil
	}
	got, ok := p.chunks.hash(total)
	if !ok && !verified { // not all of it came as chunks: cut it anew
		f, err := os.Open(p.path)
		if err != nil {
			return err
		}
		defer f.Close()
		if got, _, err = xet.Sum(f); err != nil {
			return err
		}
		ok = true
	}
	if ok && got.String() != e.Xet {
		return mismatch("xet hash", got.String(), e.Xet)
	}
	return nil
}

// gitHash returns git's name for the file's content: sha1 over "blob", the length and the bytes.
func gitHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// writeError gives an error of the disk its meaning.
func writeError(path string, err error) error {
	var p *fs.PathError
	switch {
	case outOfSpace(err):
		return errorf(ErrDiskFull, err, "%s: the disk is full; what was half written is removed: make room, or set HF_HOME to a folder on another disk", path)
	case tooLarge(err):
		return errorf(ErrDiskFull, err, "%s: the file system can't hold a file of this size (FAT ends at 4 GiB): set HF_HOME to a folder on another disk", path)
	case errors.As(err, &p):
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// onDisk reports whether err comes from the local disk, so that no other way of fetching helps.
func onDisk(err error) bool {
	var p *fs.PathError
	var l *os.LinkError
	return errors.As(err, &p) || errors.As(err, &l) || outOfSpace(err) || tooLarge(err)
}
