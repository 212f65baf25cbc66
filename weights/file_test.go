package weights

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestOpenFile(t *testing.T) {
	path := join(t.TempDir(), "a.safetensors")
	save(t, path, "x", "yy")
	f := open(t, path)
	if f.Path() != path || f.Len() != 2 || f.Metadata()["format"] != "pt" {
		t.Errorf("opened %s with %v, metadata %v", f.Path(), f.Names(), f.Metadata())
	}
	if f.BytesRead() != 0 {
		t.Errorf("opening read %d bytes of tensors", f.BytesRead())
	}
	x, err := f.Tensor("yy")
	if err != nil {
		t.Fatal(err)
	}
	want := counting(tensor.F32, 2, 2, 3)
	if a := x.Array(); !bytes.Equal(a.Data, want.Data) || a.Check() != nil || x.Path() != path {
		t.Errorf("array %v of %s", a, x.Path())
	}
	if f.BytesRead() != 24 {
		t.Errorf("%d bytes read, expected 24", f.BytesRead())
	}
	x.Release()
	f.Release()
	if !bytes.Equal(x.Bytes(), want.Data) {
		t.Error("the data is lost after Release")
	}
}

func TestOpenFileErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenFile(join(dir, "none.safetensors"))
	wantError(t, err, "none.safetensors: ", "not exist")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	_, err = OpenFile(dir)
	wantError(t, err, dir, "is a folder")
	for _, c := range damaged {
		if len(c.data) < 1<<20 {
			write(t, join(dir, "f"), string(c.data))
			_, err = OpenFile(join(dir, "f"))
			wantError(t, err, append(c.want, join(dir, "f")+": ")...)
		}
	}
	if err := os.Symlink(join(dir, "blob"), join(dir, "link")); err == nil {
		_, err = OpenFile(join(dir, "link"))
		wantError(t, err, "links to "+join(dir, "blob"), "missing", "pull the model again")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
	}
}

// A sparse file claims a header just over the limit: it is refused by its length alone.
func TestHeaderOverLimitOnDisk(t *testing.T) {
	path := join(t.TempDir(), "f")
	write(t, path, string(build("{}", 0)[:0])+"\x01\xe1\xf5\x05\x00\x00\x00\x00{}")
	if err := os.Truncate(path, 100_000_001+8); err != nil {
		t.Fatal(err)
	}
	_, err := OpenFile(path)
	wantError(t, err, "100000001 bytes", "limit is 100000000")
}

func TestUseAfterClose(t *testing.T) {
	path := join(t.TempDir(), "a.safetensors")
	save(t, path, "x")
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := f.Tensor("x")
	for range 2 { // the second does nothing
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x.Release() // harmless
	defer func() {
		err, _ := recover().(error)
		wantError(t, err, path, `tensor "x"`, "used after Close")
	}()
	x.Bytes()
	t.Error("no panic")
}

// A file that gets shorter while it is open is an error of the read, not the end of the program.
func TestTruncatedWhileOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be truncated there")
	}
	path := join(t.TempDir(), "a.safetensors")
	if err := Save(path, map[string]*tensor.Array{"x": tensor.New(tensor.U8, 1<<20)}, nil); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	x, _ := f.Tensor("x")
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	wantError(t, x.CopyTo(make([]byte, 1<<20)), path, `tensor "x"`, "truncated while open")
	if f.BytesRead() != 0 {
		t.Errorf("%d bytes counted for a failed read", f.BytesRead())
	}
}

// An error in the caller's own memory is not mistaken for one of the file.
func TestGuardPassesOtherPanics(t *testing.T) {
	path := join(t.TempDir(), "a.safetensors")
	save(t, path, "x")
	f := open(t, path)
	defer func() {
		if recover() != "mine" {
			t.Error("the panic was swallowed")
		}
	}()
	err := f.guard(func() { panic("mine") })
	t.Error("returned", err)
}

func TestConcurrentReaders(t *testing.T) {
	dir := t.TempDir()
	save(t, join(dir, "model.safetensors"), "a", "bb", "ccc")
	c, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				for x := range c.All() {
					v, err := x.Slice(1, 1, 2)
					if err != nil {
						t.Error(err)
						return
					}
					got := make([]byte, 8)
					n := len(x.Name)
					if err := v.CopyTo(got); err != nil || got[0] != byte(n+4) || x.Bytes()[0] != byte(n) {
						t.Errorf("%s: % x, %v", x.Name, got, err)
					}
					x.Release()
				}
			}
		})
	}
	wg.Wait()
	if want := int64(8 * 50 * 3 * (8 + 24)); c.BytesRead() != want {
		t.Errorf("%d bytes read, expected %d", c.BytesRead(), want)
	}
}

func TestPublishedEmbedding(t *testing.T) {
	f := open(t, shareddata.Dir(t, "data", "safetensors", "invokeai_test_embedding.safetensors"))
	x, err := f.Tensor("emb_params")
	if err != nil {
		t.Fatal(err)
	}
	if x.String() != `"emb_params" f32[5 768]` || f.Len() != 1 {
		t.Errorf("%v", f.Names())
	}
	if a := x.Array(); a.FirstNonFinite() >= 0 || a.Float32s()[0] == 0 {
		t.Errorf("not embeddings: %v", a.Float32s()[:4])
	}
}

func TestPublishedLFSPointers(t *testing.T) {
	dir := shareddata.Dir(t, "data", "lfs_pointer")
	for _, name := range []string{"diffusion_pytorch_model.safetensors", "flux_lora_full.safetensors"} {
		_, err := OpenFile(join(dir, name))
		wantError(t, err, name, "Git LFS pointer", "git lfs pull")
	}
	_, err := Open(dir, Options{})
	wantError(t, err, "diffusion_pytorch_model.safetensors", "Git LFS pointer")
}
