// Package outfile writes the files that a user names: whole or not at all, through symbolic links, and into devices and
// pipes, which are never replaced.
package outfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write gives fn a writer. A regular file appears under path when fn and all writing has succeeded; an error leaves the
// older file as it was and no other behind. What else is at path, such as a device or a pipe, is written to directly.
func Write(path string, fn func(io.Writer) error) error {
	target, direct, err := look(path)
	if err != nil {
		return writeError(path, err)
	}
	temp, flags := target, os.O_WRONLY
	if !direct {
		temp, flags = beside(target), os.O_WRONLY|os.O_CREATE|os.O_EXCL
	}
	f, err := os.OpenFile(temp, flags, 0o666) // not os.CreateTemp, whose mode 0600 would outlive the rename
	if err != nil {
		return writeError(path, err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = fn(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil && !direct {
		err = f.Sync() // or a power cut could leave the new name with no contents
	}
	if cerr := f.Close(); err == nil {
		err = cerr // some file systems find out here that they are full
	}
	if err == nil && !direct {
		err = os.Rename(temp, target)
	}
	if err == nil {
		return nil
	}
	if !direct {
		os.Remove(temp)
	}
	return writeError(path, err)
}

// Check says, before there is anything to write, why Write would fail. It leaves nothing behind.
func Check(path string) error {
	target, direct, err := look(path)
	if err != nil {
		return writeError(path, err)
	}
	if direct {
		return nil // opening a pipe could wait for ever
	}
	temp := beside(target)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return writeError(path, err)
	}
	f.Close()
	return os.Remove(temp)
}

// Target returns the absolute path of the regular file that Write would make or replace, or "" for a device or a pipe.
func Target(path string) (string, error) {
	target, direct, err := look(path)
	if err != nil || direct {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(target))
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(dir, filepath.Base(target)))
}

// look finds what is at path: a file to be made or replaced, perhaps by way of links, or something to be written directly.
func look(path string) (target string, direct bool, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return "", false, errIsFolder
		}
		return path, true, nil
	}
	for range maxLinks {
		link, err := os.Readlink(path)
		if err != nil {
			return path, false, nil
		}
		if !filepath.IsAbs(link) {
			link = filepath.Dir(path) + string(filepath.Separator) + link // not cleaned: the folder may be a link
		}
		path = link
	}
	return "", false, errors.New("too many symbolic links")
}

const maxLinks = 40

var errIsFolder = errors.New("it is a folder, expected a file name")

// beside is a new name in target's folder.
func beside(target string) string {
	return filepath.Join(filepath.Dir(target), ".gesso-"+rand.Text()+".tmp")
}

// writeError names the file that was asked for, not the temporary one, and what is wrong with its folder.
func writeError(path string, err error) error {
	dir := filepath.Dir(path)
	info, statErr := os.Stat(dir)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("write %s: folder %s does not exist: %w", path, dir, fs.ErrNotExist)
	case statErr == nil && !info.IsDir():
		return fmt.Errorf("write %s: %s is not a folder", path, dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("write %s: no permission to create files in folder %s: %w", path, dir, fs.ErrPermission)
	}
	return fmt.Errorf("write %s: %w", path, Cause(err))
}

// Cause is an error of package os without its operation and paths, which may be temporary ones.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}
