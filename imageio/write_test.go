package imageio

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

func zlibOf(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// gradient returns a picture of w by h pixels as a U8 array and as an image.
func gradient(t *testing.T, w, h, channels int) (*tensor.Array, image.Image) {
	t.Helper()
	a := tensor.New(tensor.U8, 1, h, w, channels)
	for i := range a.Data {
		p, c := i/channels, i%channels
		a.Data[i] = []uint8{uint8(p % w * 3), uint8(p / w * 5), uint8(p % w)}[c]
	}
	m, err := Images(a)
	if err != nil {
		t.Fatal(err)
	}
	return a, m[0]
}

// onlyFile fails unless dir holds exactly the named files.
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
		t.Errorf("folder holds %q, want %q", got, names)
	}
}

func TestPNGKeepsEveryPixel(t *testing.T) {
	for _, channels := range []int{1, 3} {
		want, m := gradient(t, 65, 33, channels)
		path := filepath.Join(t.TempDir(), "a.PNG")
		if err := WriteFile(path, m, Options{Text: []Text{{"Software", "Gesso"}}}); err != nil {
			t.Fatal(err)
		}
		back, err := ReadFile(path, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := Pixels(back)
		for i, v := range got.Data {
			if w := want.Data[i/3*channels+i%3%channels]; v != w {
				t.Fatalf("%d channels: byte %d is %d, want %d", channels, i, v, w)
			}
		}
		// colour type 0 is grey, 2 is RGB: no alpha is stored
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if kind := b[25]; kind != uint8(channels-1) {
			t.Errorf("%d channels: colour type %d", channels, kind)
		}
	}
}

func TestJPEGQuality(t *testing.T) {
	a, m := gradient(t, 64, 32, 3)
	size := map[int]int{}
	for _, q := range []int{0, 1, 95, 100} {
		path := filepath.Join(t.TempDir(), "a.jpeg")
		if err := WriteFile(path, m, Options{Quality: q}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		size[q] = len(b)
		back, err := ReadFile(path, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i, v := range Pixels(back).Data {
			most = max(most, int(v)-int(a.Data[i]), int(a.Data[i])-int(v))
		}
		if q == 100 && most > 12 {
			t.Errorf("quality 100 is off by %d levels", most)
		}
	}
	if size[0] != size[95] || size[1] >= size[95] || size[95] >= size[100] {
		t.Errorf("sizes by quality are %v", size)
	}
	for _, q := range []int{-1, 101} {
		wantError(t, Encode(io.Discard, JPEG, m, Options{Quality: q}), "expected 1 to 100")
	}
}

func TestFormatOf(t *testing.T) {
	for path, want := range map[string]Format{"a.png": PNG, "x/a.PNG": PNG, "a.jpg": JPEG, "a.b.JPeg": JPEG} {
		if got, err := FormatOf(path); err != nil || got != want {
			t.Errorf("FormatOf(%q) = %v, %v", path, got, err)
		}
	}
	for _, path := range []string{"a", "a.gif", "a.png/b", ""} {
		_, err := FormatOf(path)
		wantError(t, err, "expected .png, .jpg or .jpeg", path)
	}
}

func TestEmptyPictureIsRefused(t *testing.T) {
	wantError(t, Encode(io.Discard, PNG, image.NewGray(image.Rectangle{}), Options{}), "empty")
}

func TestFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.png")
	for _, w := range []int{4, 2} {
		_, m := gradient(t, w, 1, 3)
		if err := WriteFile(path, m, Options{}); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path, Limits{}); err != nil || got.Bounds().Dx() != w {
			t.Errorf("width is %v, %v, want %d", got, err, w)
		}
	}
	onlyFiles(t, dir, "a.png")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o400 == 0 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
}

func TestSymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.png"), filepath.Join(dir, "link.png")
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.png", link); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(link, dot(), Options{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(real); err != nil || info.Size() == 0 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

func TestWriteErrorsNameThePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"missing/a.png": "folder " + filepath.Join(dir, "missing") + " does not exist",
		"file/a.png":    filepath.Join(dir, "file") + " is not a folder",
		"folder.png":    "it is a folder",
		"a.webp":        `extension ".webp"`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := WriteFile(path, dot(), Options{})
		wantError(t, err, want, path)
		if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), ".tmp") {
			t.Errorf("error is %v", err)
		}
	}
	if err := WriteFile(filepath.Join(dir, "missing", "a.png"), dot(), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	onlyFiles(t, dir, "file", "folder.png")
}

func TestFolderWithoutPermission(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.png")
	wantError(t, WriteFile(path, dot(), Options{}), path, "no permission")
}

func TestBytesAreAFile(t *testing.T) {
	_, m := gradient(t, 8, 8, 3)
	var b bytes.Buffer
	if err := Encode(&b, JPEG, m, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := jpeg.Decode(&b); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken pipe")
	if err := Encode(failingWriter{broken}, PNG, m, Options{}); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
