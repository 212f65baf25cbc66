// Package goldentest reads the reference data of tokenizer tests: gzipped files and lines of JSON.
package goldentest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// File gives the content of a file, unpacked if its name ends in .gz.
func File(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

// Lines decodes a file with a JSON document on each line. An empty file fails the test.
func Lines[T any](t testing.TB, path string) []T {
	t.Helper()
	var out []T
	for dec := json.NewDecoder(bytes.NewReader(File(t, path))); dec.More(); {
		var line T
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("%s: line %d: %v", path, len(out)+1, err)
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		t.Fatalf("%s: no lines", path)
	}
	return out
}

// Folder is a folder in memory, made of files on disk by the name that they shall have. Gzipped ones are unpacked.
func Folder(t testing.TB, files map[string]string) fstest.MapFS {
	t.Helper()
	folder := fstest.MapFS{}
	for name, path := range files {
		folder[name] = &fstest.MapFile{Data: File(t, path)}
	}
	return folder
}

// Settings is one line of settings.jsonl.gz: the settings files of a tokenizer and what Transformers makes of some texts
// with them; see ../../testdata/make_settings.py.
type Settings struct {
	Files  map[string]map[string]json.RawMessage // of tokenizer.json only the keys to replace
	Length int
	Texts  []string
	IDs    [][2][]int64 // for each text: all ids, and those cut or padded to Length
}

// Apply puts the files into a folder, where a tokenizer.json is there already.
func (s *Settings) Apply(t testing.TB, folder fstest.MapFS) {
	t.Helper()
	for name, content := range s.Files {
		if name == "tokenizer.json" {
			whole := map[string]json.RawMessage{}
			if err := json.Unmarshal(folder[name].Data, &whole); err != nil {
				t.Fatal(err)
			}
			maps.Copy(whole, content)
			content = whole
		}
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: data}
	}
}

// Dir is the files of a folder on disk, those that match one of the patterns.
func Dir(t testing.TB, dir string, patterns ...string) fstest.MapFS {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no file matches %s", dir, pattern)
		}
		for _, path := range found {
			files[strings.TrimSuffix(filepath.Base(path), ".gz")] = path
		}
	}
	return Folder(t, files)
}
