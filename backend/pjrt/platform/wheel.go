package platform

import (
	"archive/zip"
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// wheel is a Python package that may hold a plugin.
type wheel struct {
	name, version, license string
	libraries              []*zip.File
	licenses               []*zip.File
}

// maxMetadata bounds what is read of a wheel's texts.
const maxMetadata = 1 << 20

// readWheel reads a wheel's list of files and its metadata.
func readWheel(z *zip.Reader) (*wheel, error) {
	w := &wheel{}
	for _, file := range z.File {
		dir, base := path.Split(file.Name)
		info := strings.HasSuffix(strings.SplitN(dir, "/", 2)[0], ".dist-info")
		switch {
		case info && base == "METADATA":
			b, err := readPart(file)
			if err != nil {
				return nil, fmt.Errorf("METADATA: %w", err)
			}
			w.readMetadata(string(b))
		case strings.HasPrefix(strings.ToUpper(base), "LICENSE"):
			w.licenses = append(w.licenses, file)
		case strings.HasSuffix(base, ".so"):
			w.libraries = append(w.libraries, file)
		}
	}
	if w.name == "" || w.version == "" {
		return nil, errors.New("not a wheel: no METADATA with name and version")
	}
	return w, nil
}

// readMetadata reads the fields before the first empty line, as in an e-mail.
func (w *wheel) readMetadata(text string) {
	var classifiers []string
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan() && strings.TrimSpace(s.Text()) != ""; {
		key, value, ok := strings.Cut(s.Text(), ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || strings.HasPrefix(key, " ") {
			continue
		}
		switch key {
		case "Name":
			w.name = plain(value)
		case "Version":
			w.version = plain(value)
		case "License-Expression":
			w.license = value
		case "License":
			if w.license == "" {
				w.license = value
			}
		case "Classifier":
			if l, ok := strings.CutPrefix(value, "License :: "); ok {
				classifiers = append(classifiers, strings.TrimPrefix(l, "OSI Approved :: "))
			}
		}
	}
	if w.license == "" {
		w.license = strings.Join(classifiers, ", ")
	}
}

// plain keeps of a name what may be part of a file's name.
func plain(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._+-", r) {
			return r
		}
		return '_'
	}, name), ".")
}

func readPart(file *zip.File) ([]byte, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxMetadata))
}

// errNoEntry says that a library is not a plugin.
var errNoEntry = errors.New("it exports no GetPjrtApi")

// exportsEntry looks at a shared library without loading it. Only ELF libraries are looked at; loading tells of others.
func exportsEntry(file string) error {
	e, err := elf.Open(file)
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it is no shared library of this system (ELF)")
		}
		return err
	}
	defer e.Close()
	symbols, err := e.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("its symbols can't be read: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "GetPjrtApi" && s.Section != elf.SHN_UNDEF {
			return nil
		}
	}
	return errNoEntry
}

// extract writes a wheel's file to dst.
func extract(file *zip.File, dst *os.File) error {
	r, err := file.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := dst.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := dst.Truncate(0); err != nil {
		return err
	}
	n, err := io.Copy(dst, io.LimitReader(r, int64(file.UncompressedSize64)+1))
	if err == nil && uint64(n) != file.UncompressedSize64 {
		err = fmt.Errorf("%s: %d bytes, expected %d", file.Name, n, file.UncompressedSize64)
	}
	return err
}
