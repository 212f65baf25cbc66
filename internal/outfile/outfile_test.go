package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// onlyFiles checks what a folder holds.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, expected %q", got, names)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.png")
	full := func(w io.Writer) error {
		if _, err := w.Write([]byte("half a picture")); err != nil {
			return err
		}
		return &fs.PathError{Op: "write", Path: "a temporary name", Err: syscall.ENOSPC}
	}
	err := Write(path, full)
	if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "temporary") || !strings.Contains(err.Error(), "write "+path) {
		t.Errorf("error is %v", err)
	}
	onlyFiles(t, dir)

	// an older file stays
	if err := Write(path, text("older")); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, full); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(path); string(b) != "older" {
		t.Errorf("the older file now holds %q", b)
	}
	onlyFiles(t, dir, "a.png")
}

// A link is followed, also where what it names is not there yet.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("link", filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"new", "newer"} {
		if err := Write(filepath.Join(dir, "again"), text(s)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "real")); string(b) != s {
			t.Errorf("%q, %v", b, err)
		}
	}
	for _, name := range []string{"link", "again"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", name)
		}
	}
	a, err := Target(filepath.Join(dir, "again"))
	if b, berr := Target(filepath.Join(dir, ".", "real")); err != nil || berr != nil || a != b || !filepath.IsAbs(a) {
		t.Errorf("%s, %v; %s, %v", a, err, b, berr)
	}
	if err := os.Symlink("round", filepath.Join(dir, "round")); err != nil {
		t.Fatal(err)
	}
	if Check(filepath.Join(dir, "round")) == nil || Write(filepath.Join(dir, "round"), text("x")) == nil {
		t.Error("links in a circle are taken")
	}
	onlyFiles(t, dir, "again", "link", "real", "round")
}

// A device is written to and stays, also behind a link.
func TestDevices(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs /dev/null")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, path := range []string{os.DevNull, link} {
		if target, err := Target(path); target != "" || err != nil {
			t.Errorf("%s would be replaced as %q, %v", path, target, err)
		}
		if err := Check(path); err != nil {
			t.Error(err)
		}
		if err := Write(path, text("x")); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			t.Fatalf("%s is now %v, %v", path, info, err)
		}
	}
	if err := Write("/dev/full", text("x")); runtime.GOOS == "linux" && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full device: %v", err)
	}
	pipe := filepath.Join("/proc/self/fd", strconv.Itoa(int(w.Fd())))
	if _, err := os.Stat(pipe); err != nil {
		return
	}
	if err := Write(pipe, text("through")); err != nil {
		t.Error(err)
	}
	w.Close()
	if b, err := io.ReadAll(r); string(b) != "through" {
		t.Errorf("the pipe gave %q, %v", b, err)
	}
}

// Permissions are those that the umask leaves.
func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "ours"), text("x")); err != nil {
		t.Fatal(err)
	}
	plain, err1 := os.Stat(filepath.Join(dir, "plain"))
	ours, err2 := os.Stat(filepath.Join(dir, "ours"))
	if err1 != nil || err2 != nil || plain.Mode() != ours.Mode() {
		t.Errorf("%v, %v; %v, %v", plain, err1, ours, err2)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"missing/a": "folder " + filepath.Join(dir, "missing") + " does not exist", "file/a": "is not a folder", ".": "it is a folder"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		for _, err := range []error{Check(path), Write(path, text("x"))} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write "+path) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"file", "new"} {
		if err := Check(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	onlyFiles(t, dir, "file")

	err := writeError(filepath.Join(dir, "a.png"), &fs.PathError{Op: "open", Path: ".gesso-x.tmp", Err: syscall.EACCES})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "no permission to create files in folder "+dir) {
		t.Errorf("error is %v", err)
	}
}
