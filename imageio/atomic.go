package imageio

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeAtomic gives fn a temporary file in path's folder, and renames it to path when fn and all writing has succeeded.
func writeAtomic(path string, fn func(io.Writer) error) (err error) {
	target := resolve(path)
	f, err := createBeside(target)
	if err != nil {
		return writeError(path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = writeError(path, err)
		}
	}()
	if err := fn(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil { // some file systems find out here that they are full
		return err
	}
	return os.Rename(f.Name(), target)
}

// createBeside makes a new file in target's folder, with the permissions that target would get.
func createBeside(target string) (*os.File, error) {
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		return nil, errIsFolder
	}
	name := filepath.Join(filepath.Dir(target), ".gesso-"+rand.Text()+".tmp")
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

var errIsFolder = errors.New("it is a folder, expected a file name")

// resolve follows a symbolic link, which a rename would replace.
func resolve(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
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
	var p *fs.PathError
	var l *os.LinkError
	if errors.As(err, &p) {
		err = p.Err
	} else if errors.As(err, &l) {
		err = l.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}
