package hub

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"github.com/gesso-go/gesso/hub/hubtest"
)

func mustPull(t *testing.T, cfg Config, ref string) *Result {
	t.Helper()
	r, err := Pull(context.Background(), cfg, ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sharedStore puts a content where huggingface_hub 2.x keeps what several repositories share.
func sharedStore(t *testing.T, cfg Config, f *hubtest.File) string {
	t.Helper()
	hash := f.Xet.String()
	path := filepath.Join(cfg.CacheDir, "blobs", hash[:2], hash)
	if err := writeFile(filepath.Join(cfg.CacheDir, "blobs", sharedMarker), []byte(sharedLayout), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, f.Bytes(), 0o444); err != nil {
		t.Fatal(err)
	}
	return path
}

// A content of the cache-wide store is used, counted, and deleted with its last user.
func TestSharedStore(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	data := weights(1, 300_000)
	one, two := h.AddModel("acme/one"), h.AddModel("acme/two")
	f := one.AddXet("a.safetensors", data)
	two.AddXet("b.safetensors", data)
	cfg := testConfig(t, h)
	path := sharedStore(t, cfg, f)
	r1, r2 := mustPull(t, cfg, "acme/one"), mustPull(t, cfg, "acme/two")
	sameFiles(t, r1.Dir, one, []string{"a.safetensors"})
	if n := len(h.Requests(hubtest.Xorb, hubtest.Content)); n > 0 {
		t.Errorf("%d requests for content that is in the store", n)
	}
	repos, total, err := List(cfg)
	if err != nil || len(repos) != 2 || repos[0].Size != f.Size || repos[1].Size != f.Size || total != f.Size {
		t.Errorf("List: %+v, %d bytes, %v", repos, total, err)
	}
	gone, err := Remove(cfg, "acme/one")
	if err != nil || gone.Freed != 0 {
		t.Errorf("Remove: %+v, %v", gone, err)
	}
	sameFiles(t, r2.Dir, two, []string{"b.safetensors"})
	if refs, err := os.ReadFile(path + ".refs"); err != nil || strings.Contains(string(refs), "acme--one") || !strings.Contains(string(refs), "acme--two") {
		t.Errorf("references %q, %v", refs, err)
	}
	if gone, err = Remove(cfg, "acme/two"); err != nil || gone.Freed != f.Size {
		t.Errorf("Remove: %+v, %v", gone, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the content is still there: %v", err)
	}
}

// Without references nobody knows who uses a content: it stays.
func TestSharedStoreWithoutReferences(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	one := h.AddModel("acme/one")
	f := one.AddXet("a.safetensors", weights(1, 100_000))
	cfg := testConfig(t, h)
	path := sharedStore(t, cfg, f)
	mustPull(t, cfg, "acme/one")
	if err := os.Remove(path + ".refs"); err != nil {
		t.Fatal(err)
	}
	if gone, err := Remove(cfg, "acme/one"); err != nil || gone.Freed != 0 {
		t.Errorf("Remove: %+v, %v", gone, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, f.Bytes()) {
		t.Errorf("the content is gone: %v", err)
	}
}

func TestRemoveWithoutSymlinks(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	big := repo.AddXet("a.safetensors", weights(1, 300_000))
	repo.Add("b.txt", []byte("one"))
	cfg := testConfig(t, h)
	cfg.DisableSymlinks = true
	mustPull(t, cfg, "acme/tiny")
	first := repo.Commit
	repo.Commit = strings.Repeat("ab", 20)
	repo.Add("b.txt", []byte("two!"))
	r := mustPull(t, cfg, "acme/tiny")
	gone, err := Remove(cfg, "acme/tiny@"+first)
	if err != nil || !slices.Equal(gone.Commits, []string{first}) {
		t.Fatalf("Remove: %+v, %v", gone, err)
	}
	if runtime.GOOS != "windows" && gone.Freed != 3 { // the weights are one file with two names
		t.Errorf("freed %d bytes, expected 3", gone.Freed)
	}
	sameFiles(t, r.Dir, repo, []string{"a.safetensors", "b.txt"})
	if gone, err = Remove(cfg, "acme/tiny"); err != nil || gone.Freed != big.Size+4 {
		t.Errorf("Remove: %+v, %v", gone, err)
	}
}

func TestRemoveWaitsForNobody(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	f := repo.Add("b.txt", []byte("one"))
	cfg := testConfig(t, h)
	cfg.CacheDir = filepath.Join(t.TempDir(), "[a] b") // which a shell pattern would take for something else
	r := mustPull(t, cfg, "acme/tiny")
	l := flock.New(filepath.Join(cfg.CacheDir, ".locks", "models--acme--tiny", f.Git+".lock"))
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := Remove(cfg, "acme/tiny"); err == nil || !strings.Contains(err.Error(), "being downloaded") {
		t.Errorf("removed under a download: %v", err)
	}
	sameFiles(t, r.Dir, repo, []string{"b.txt"})
	l.Close()
	if _, err := Remove(cfg, "acme/tiny"); err != nil {
		t.Error(err)
	}
}

// huggingface_hub#2742: a disk that fills up in the middle. What is half written goes, what is whole stays.
func TestDiskFullInTheMiddle(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.Add("a.txt", randomBytes(1, 1000))
	repo.AddLFS("b.bin", randomBytes(2, 2<<20))
	cfg := testConfig(t, h)
	cfg.Workers = 1
	cfg.FreeSpace = func(string) (int64, error) { return 1 << 40, nil } // as on a network disk that doesn't tell
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unmount(dir)
	cfg.CacheDir = dir
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{Include: []string{"a.txt"}}); err != nil {
		t.Fatal(err)
	}
	_, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "blobs", "*incomplete*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	cacheIsRight(t, dir, repo)
	sameFiles(t, filepath.Join(dir, "models--acme--tiny", "snapshots", repo.Commit), repo, []string{"a.txt"})
}

func TestDescribeReadsHeadersOnly(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	// A header that is longer than the first look, before much data.
	header := []byte(`{"__metadata__":{"format":"` + strings.Repeat("x", 100_000) + `"},"a":{"dtype":"BF16","shape":[1000,500],"data_offsets":[0,1000000]},"b":{"dtype":"F32","shape":[],"data_offsets":[1000000,1000004]}}`)
	data := append([]byte{byte(len(header)), byte(len(header) >> 8), byte(len(header) >> 16), 0, 0, 0, 0, 0}, header...)
	repo.AddLFS("model.safetensors", append(data, make([]byte, 1_000_004)...))
	repo.Add("config.json", []byte(`{"architectures": ["TinyModel"]}`))
	d, err := Describe(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Class != "TinyModel" || d.License != "apache-2.0" || len(d.Components) != 1 || d.Components[0].Parameters != 500_001 ||
		d.Components[0].DTypes["BF16"] != 500_000 || d.Cached != 0 || d.Files != 2 {
		t.Errorf("%+v", d)
	}
	var sent int64
	for _, q := range h.Requests(hubtest.Content) {
		sent += q.Sent
	}
	if sent > 200_000 {
		t.Errorf("%d bytes were fetched", sent)
	}
	repo.AddLFS("model.safetensors", append([]byte("PK\x03\x04"), make([]byte, 1000)...))
	if _, err := Describe(context.Background(), testConfig(t, h), "acme/tiny", Options{}); err == nil || !strings.Contains(err.Error(), "model.safetensors: not a safetensors file") {
		t.Errorf("a zip file: %v", err)
	}
}
