package platform

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// wheelFile writes a wheel with the given files; a value that begins with @ is the path of a file to put in.
func wheelFile(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, content := range files {
		b := []byte(content)
		if file, ok := strings.CutPrefix(content, "@"); ok {
			if b, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const metadata = "Metadata-Version: 2.4\nName: an-xla-cpu\nVersion: 1.2.3\nLicense-Expression: Apache-2.0\n\nVersion: not this one\n"

// A plugin out of a wheel is found, used, listed and removed.
func TestAdd(t *testing.T) {
	so := plugintest.Wrap(t, plugintest.Newest(t))
	whl := wheelFile(t, map[string]string{
		"an_xla_cpu-1.2.3.dist-info/METADATA": metadata, "an_xla_cpu-1.2.3.dist-info/licenses/LICENSE": "do as you like",
		"an_xla_cpu/plugin.so": "@" + so, "an_xla_cpu/other.so": strings.Repeat("larger, and no library", 10_000), "an_xla_cpu/__init__.py": "",
	})
	f := machine(t)
	f.Probe = probe
	in, err := f.Add(t.Context(), whl, "")
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(f.CacheDir, "plugins", "xla-cpu", "an_xla_cpu-1.2.3.so")
	if in.Platform != "xla-cpu" || in.Path != want || in.Package != "an-xla-cpu 1.2.3" || in.License != "Apache-2.0" || !strings.HasPrefix(in.Plugin, "pjrt 0.") {
		t.Errorf("added %+v", in)
	}
	if b, err := os.ReadFile(strings.TrimSuffix(want, ".so") + ".licence.txt"); err != nil || !strings.Contains(string(b), "do as you like") {
		t.Errorf("the licence: %q, %v", b, err)
	}
	all, err := f.Installed()
	if err != nil || len(all) != 1 || all[0] != in {
		t.Errorf("installed: %+v, %v, expected %+v", all, err, in)
	}
	f.Probe = func(context.Context, string, string, []string) (Info, error) {
		t.Error("what Add has tried is tried again")
		return Info{}, errors.New("unexpected")
	}
	c, _, err := f.Open(t.Context(), "xla-cpu")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	f.Probe = probe

	// The same library by itself, under a name of one's own.
	own, err := f.Add(t.Context(), so, "my-npu")
	if err != nil {
		t.Fatal(err)
	}
	if own.File != "fake" || own.License != "" || !slices.Contains(f.Names(), "my-npu") {
		t.Errorf("added %+v, names %v", own, f.Names())
	}
	if path, err := f.Find("my-npu"); err != nil || path != own.Path {
		t.Errorf("found %s, %v", path, err)
	}

	for _, name := range []string{"an_xla_cpu-1.2.3", "my-npu/fake"} {
		if _, err := f.Remove(name); err != nil {
			t.Error(err)
		}
		if _, err := f.Remove(name); err == nil || !strings.Contains(err.Error(), "no plugin "+name) {
			t.Errorf("removed twice: %v", err)
		}
	}
	left, err := filepath.Glob(filepath.Join(f.CacheDir, "plugins", "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What can't be added is refused with the reason, and leaves nothing behind.
func TestAddRefuses(t *testing.T) {
	libm := ""
	for _, p := range []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"} {
		if _, err := os.Stat(p); err == nil {
			libm = p
		}
	}
	if libm == "" {
		t.Skip("no library to try it with")
	}
	crash := plugintest.Fake(t, plugintest.CrashOnInit)
	plain := write(t, "text", t.TempDir(), "cpu.so")
	for _, test := range []struct{ file, name, text string }{
		{filepath.Join(t.TempDir(), "none.so"), "", "no such file"},
		{filepath.Join(t.TempDir(), "none.whl"), "", "no such file"},
		{plain, "", "no shared library of this system"},
		{write(t, "text", t.TempDir(), "plugin.tar.gz"), "", "expected a wheel (.whl) or a shared library (.so)"},
		{write(t, "text", t.TempDir(), "plugin.whl"), "", "not a valid zip file"},
		{wheelFile(t, map[string]string{"a/b.so": "x"}), "", "not a wheel: no METADATA"},
		{wheelFile(t, map[string]string{"a.dist-info/METADATA": metadata, "a/m.so": "@" + libm}), "", "an-xla-cpu 1.2.3 holds no PJRT plugin: none of its 1 libraries exports GetPjrtApi"},
		{crash, "", "--name"},
		{crash, "npu", "fake.so crashed the process that tried it"},
		{crash, "../npu", "can't be a device's name"},
		{crash, "..", "can't be a device's name"},
	} {
		f := machine(t)
		f.Probe = probe
		_, err := f.Add(t.Context(), test.file, test.name)
		if err == nil || !strings.HasPrefix(err.Error(), test.file+": ") || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), ".add-") {
			t.Errorf("%s: got %v, expected %q", test.file, err, test.text)
		}
		left, err := filepath.Glob(filepath.Join(f.CacheDir, "plugins", "*", "*"))
		hidden, herr := filepath.Glob(filepath.Join(f.CacheDir, "plugins", ".*"))
		if err != nil || herr != nil || len(left)+len(hidden) != 0 {
			t.Errorf("%s: left %v, %v", test.file, left, hidden)
		}
	}
	f := machine(t)
	f.CacheDir = ""
	if _, err := f.Add(t.Context(), crash, "npu"); err != errNoCache {
		t.Errorf("no cache folder: %v", err)
	}
}

func TestReadMetadata(t *testing.T) {
	for text, want := range map[string]wheel{
		metadata: {name: "an-xla-cpu", version: "1.2.3", license: "Apache-2.0"},
		"Name: libtpu\nVersion: 0.0.52\nLicense: Google Cloud Platform Terms of Service\n":                       {name: "libtpu", version: "0.0.52", license: "Google Cloud Platform Terms of Service"},
		"Name: x\nVersion: 1\nClassifier: License :: OSI Approved :: MIT License\nClassifier: Topic :: Software": {name: "x", version: "1", license: "MIT License"},
		"Name: ../../x\nVersion: 1/2\n": {name: "_.._x", version: "1_2"},
	} {
		w := &wheel{}
		w.readMetadata(text)
		if w.name != want.name || w.version != want.version || w.license != want.license {
			t.Errorf("%q: got %+v, expected %+v", text, w, want)
		}
	}
}

func FuzzReadWheel(f *testing.F) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a-1.dist-info/METADATA", "a/b.so", "a-1.dist-info/LICENSE"} {
		w, err := z.Create(name)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, metadata); err != nil {
			f.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		w, err := readWheel(z)
		if err != nil {
			return
		}
		for _, part := range []string{w.name, w.version} {
			if part == "" || strings.ContainsAny(part, "/\\\x00") || strings.HasPrefix(part, ".") {
				t.Errorf("%q is to be part of a file's name", part)
			}
		}
	})
}
