package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/hub/xet"
)

// What people reported about downloads from the Hub, each with what is right here.

// huggingface_hub#3371, #3007: a half-empty snapshot was returned as a success when the Hub was down.
func TestIncompleteSnapshotIsRefused(t *testing.T) {
	for _, how := range []string{"hub is down", "offline"} {
		t.Run(how, func(t *testing.T) {
			h := hubtest.New()
			defer h.Close()
			addPipeline(h.AddModel("acme/tiny"))
			cfg := testConfig(t, h)
			dir := filepath.Join(cfg.CacheDir, "models--acme--tiny")
			snapshot := filepath.Join(dir, "snapshots", hubtest.DefaultCommit)
			for path, data := range map[string]string{
				filepath.Join(dir, "refs", "main"):          hubtest.DefaultCommit,
				filepath.Join(snapshot, "model_index.json"): modelIndexJSON,
			} {
				os.MkdirAll(filepath.Dir(path), 0o755)
				os.WriteFile(path, []byte(data), 0o644)
			}
			down := cfg
			if how == "offline" {
				down.Offline = true
			} else {
				h.Fault = func(*hubtest.Request) *hubtest.Fault { return &hubtest.Fault{Status: 503} }
			}
			_, err := Pull(context.Background(), down, "acme/tiny", Options{})
			if err == nil {
				t.Fatal("a snapshot with nothing but its index was taken for whole")
			}
			for _, want := range []string{"vae/config.json", "transformer/*.safetensors", "tokenizer/tokenizer.json", "and "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q doesn't say %q", err, want)
				}
			}
			h.Fault = nil
			if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
				t.Fatal(err)
			}
			h.Fault = func(*hubtest.Request) *hubtest.Fault { return &hubtest.Fault{Status: 503} }
			if _, err := Pull(context.Background(), down, "acme/tiny", Options{}); err != nil {
				t.Errorf("a complete snapshot was refused: %v", err)
			}
			// Without the listing, as older clients leave it, its own files tell.
			os.Remove(filepath.Join(dir, "trees", hubtest.DefaultCommit+".json"))
			if _, err := Pull(context.Background(), down, "acme/tiny", Options{}); err != nil {
				t.Errorf("a complete snapshot without listing was refused: %v", err)
			}
			os.Remove(filepath.Join(snapshot, "transformer", "diffusion_pytorch_model-00002-of-00002.safetensors"))
			_, err = Pull(context.Background(), down, "acme/tiny", Options{})
			if err == nil || !strings.Contains(err.Error(), "00002-of-00002") {
				t.Errorf("a missing shard: %v", err)
			}
		})
	}
}

// What a killed download left goes when another client has completed the file.
func TestPartialFileOfAWholeBlob(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	f := h.AddModel("acme/tiny").AddLFS("a.bin", weights(1, 300_000))
	cfg := testConfig(t, h)
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	blob, err := filepath.EvalSymlinks(filepath.Join(r.Dir, "a.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner owner
		stays bool
	}{
		{owner{host: "-", start: "-"}, false},
		{owner{host: "elsewhere", pid: 1, start: "-"}, true},
	} {
		p, err := openPartial(blob, f.SHA256, f.Size)
		if err != nil {
			t.Fatal(err)
		}
		p.write(0, []byte("a beginning"), xet.Hash{})
		p.close()
		header := formatHeader(f.SHA256, f.Size, c.owner)
		journal, err := os.OpenFile(journalName(p.path), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		journal.WriteAt(header, 0)
		journal.Close()
		if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(blob + ".*")
		if want := map[bool]int{false: 0, true: 2}[c.stays]; len(left) != want {
			t.Errorf("owner %+v: %v", c.owner, left)
		}
	}
}

// Offline, a snapshot whose contents the cache has is put together from them, and else what is missing is named.
func TestOfflineSnapshotFromBlobs(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	cfg := testConfig(t, h)
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	offline := cfg
	offline.Offline = true
	pull := func() error {
		_, err := Pull(context.Background(), offline, "acme/tiny", Options{})
		return err
	}
	os.Remove(filepath.Join(r.Dir, "vae", "config.json"))
	if err := pull(); err != nil {
		t.Errorf("without one link: %v", err)
	}
	os.RemoveAll(r.Dir)
	if err := pull(); err != nil {
		t.Errorf("without links: %v", err)
	}
	sameFiles(t, r.Dir, repo, pipelineFiles)

	blob, err := filepath.EvalSymlinks(filepath.Join(r.Dir, "vae", "diffusion_pytorch_model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(blob)
	os.RemoveAll(r.Dir)
	err = pull()
	if !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "missing: vae/diffusion_pytorch_model.safetensors, and") {
		t.Errorf("without a blob: %v", err)
	}
}

// A first download that broke off leaves no name for its commit. Offline, it is told from nothing at all.
func TestOfflineAfterABrokenDownload(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	addPipeline(h.AddModel("acme/tiny"))
	cfg := testConfig(t, h)
	cfg.Workers = 1 // the largest files come first
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Content {
			return &hubtest.Fault{Status: 404}
		}
		return nil
	}
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err == nil {
		t.Fatal("no error")
	}
	cfg.Offline = true
	for what, ask := range map[string]func() error{
		"pull":     func() error { _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); return err },
		"describe": func() error { _, err := Describe(context.Background(), cfg, "acme/tiny", Options{}); return err },
	} {
		err := ask()
		if !errors.Is(err, ErrOffline) || !errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range []string{"not in the cache", "broke off", "vae/diffusion_pytorch_model.safetensors", "HF_HUB_OFFLINE"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %q doesn't say %q", what, err, want)
			}
		}
	}
	h.Fault = nil
	cfg.Offline = false
	if _, err := Pull(context.Background(), cfg, "acme/tiny@"+hubtest.DefaultCommit, Options{}); err != nil {
		t.Fatal(err)
	}
	cfg.Offline = true
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err == nil || !strings.Contains(err.Error(), "ask for acme/tiny@"+hubtest.DefaultCommit) {
		t.Errorf("whole, but under no name: %v", err)
	}
}

// huggingface_hub#2197: a stale partial file as long as the file, or longer, asked for ranges beyond the end for ever.
func TestStalePartialFile(t *testing.T) {
	for _, xet := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			change func([]byte) []byte
		}{
			{"longer by one", func(b []byte) []byte { return append(b, 0) }},
			{"same length, other bytes", func(b []byte) []byte { return make([]byte, len(b)) }},
			{"whole", func(b []byte) []byte { return b }},
			{"half", func(b []byte) []byte { return b[:len(b)/2] }},
			{"half, other bytes", func(b []byte) []byte { return make([]byte, len(b)/2) }},
			{"empty", func([]byte) []byte { return nil }},
		} {
			t.Run(fmt.Sprintf("xet=%v/%s", xet, c.name), func(t *testing.T) {
				h := hubtest.New()
				defer h.Close()
				h.NoXet = !xet
				repo := h.AddModel("acme/tiny")
				f := repo.AddXet("a.bin", weights(1, 600_000))
				cfg := testConfig(t, h)
				blob := filepath.Join(cfg.CacheDir, "models--acme--tiny", "blobs", f.SHA256)
				os.MkdirAll(filepath.Dir(blob), 0o755)
				os.WriteFile(blob+".incomplete", c.change(f.Bytes()), 0o644)
				r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
				if err != nil {
					t.Fatal(err)
				}
				sameFiles(t, r.Dir, repo, []string{"a.bin"})
				if n := len(h.Requests()); n > 12 {
					t.Errorf("%d requests: %v", n, kinds(h.Requests()))
				}
				var sent int64
				for _, q := range h.Requests(hubtest.Content, hubtest.Xorb) {
					sent += q.Sent
				}
				switch {
				case c.name == "whole" && sent > 0:
					t.Errorf("fetched %d bytes of a file that was whole", sent)
				case c.name == "half" && sent > 450_000:
					t.Errorf("fetched %d bytes of half a file", sent)
				}
			})
		}
	}
}

// huggingface_hub#1498: a server that ignores Range answers with the whole body, which was appended.
func TestServerIgnoresRange(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.AddLFS("a.bin", weights(1, 500_000))
	repo.Add("b.txt", randomBytes(2, 90_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Content || r.Kind == hubtest.Resolve {
			f := &hubtest.Fault{IgnoreRange: true}
			if r.Range == "" {
				f.CutAfter = 70_000
			}
			return f
		}
		return nil
	}
	r, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, []string{"a.bin", "b.txt"})
}

// The same with a content server that compresses: its length is that of the compressed bytes.
func TestServerCompresses(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.AddLFS("a.bin", weights(1, 500_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Content {
			return &hubtest.Fault{Gzip: true, CutAfter: map[int]int64{1: 200_000}[r.Number], IgnoreRange: r.Number > 1}
		}
		return nil
	}
	r, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, []string{"a.bin"})
}

// hf-mirror-site#50, xget#10: with HF_ENDPOINT set, the token route in the Link header still led to huggingface.co; and
// mirrors that drop Content-Length.
func TestMirror(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	h.PublicRoutes, h.NoTree = true, true
	repo := h.AddModel("acme/tiny")
	repo.AddXet("a.bin", weights(1, 300_000))
	repo.Add("b.txt", randomBytes(2, 90_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Head || r.Kind == hubtest.Resolve {
			return &hubtest.Fault{NoLength: true}
		}
		return nil
	}
	cfg := testConfig(t, h)
	var elsewhere atomic.Int32
	cfg.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if "http://"+r.URL.Host != h.URL() && "http://"+r.URL.Host != h.CDN() {
			elsewhere.Add(1)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, []string{"a.bin", "b.txt"})
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests to other hosts", n)
	}
	if len(h.Requests(hubtest.XetToken)) == 0 || len(h.Requests(hubtest.Content)) > 0 {
		t.Error("the Xet route was not taken")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// huggingface_hub#4915, #1062: a file system without links, several files at once.
func TestNoSymlinks(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("folder/%d.bin", i))
		repo.AddXet(names[i], weights(uint64(i), 100_000))
	}
	cfg := testConfig(t, h)
	cfg.Symlink = func(target, link string) error {
		return &os.LinkError{Op: "symlink", Old: target, New: link, Err: errors.New("a required privilege is not held by the client")}
	}
	var warnings []string
	var mu sync.Mutex
	cfg.Warn = func(m string) { mu.Lock(); defer mu.Unlock(); warnings = append(warnings, m) }
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, names)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "symbolic links") {
		t.Errorf("warnings: %q", warnings)
	}
	for _, n := range names {
		if info, err := os.Lstat(filepath.Join(r.Dir, n)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s is no real file: %v", n, err)
		}
	}
	if blobs, _ := os.ReadDir(filepath.Join(cfg.CacheDir, "models--acme--tiny", "blobs")); len(blobs) > 0 {
		t.Errorf("%d second copies", len(blobs))
	}
	h.Forget()
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	if n := len(h.Requests()); n > 1 {
		t.Errorf("the second pull took %d requests", n)
	}
	// A new commit with the same contents needs no transfer.
	repo.Commit = strings.Repeat("ab", 20)
	h.Forget()
	if r, err = Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, names)
	if n := len(h.Requests(hubtest.Xorb, hubtest.Content)); n > 0 {
		t.Errorf("the new commit took %d transfers", n)
	}
}

// huggingface_hub#2742: a full disk was a warning only.
func TestDiskFullBeforeTheStart(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.AddLFS("a.bin", randomBytes(1, 2<<20))
	cfg := testConfig(t, h)
	cfg.FreeSpace = func(string) (int64, error) { return 1 << 20, nil }
	_, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "2097152 bytes") || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("error %v", err)
	}
	if n := len(h.Requests(hubtest.Content, hubtest.Resolve)); n > 0 {
		t.Errorf("%d requests for content that can't be kept", n)
	}
}

// NVIDIA-NeMo/Automodel PR 2747 (a warm cache made six requests) is part of TestPullFetchesWhatAPipelineNeeds.

// A 401 from the store in the middle of a download refreshes the token once.
func TestStoreRefusesToken(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	for i := range 6 {
		repo.AddXet(fmt.Sprintf("%d.bin", i), weights(uint64(i), 200_000))
	}
	var refused atomic.Int32
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Reconstruction && r.Auth == "Bearer xet_test1" && r.Number > 2 {
			refused.Add(1)
			return &hubtest.Fault{Status: 401}
		}
		return nil
	}
	r, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, []string{"0.bin", "1.bin", "2.bin", "3.bin", "4.bin", "5.bin"})
	if refused.Load() == 0 || len(h.Requests(hubtest.XetToken)) != 2 || len(h.Requests(hubtest.Content)) > 0 {
		t.Errorf("%d refusals, %d tokens, %d plain transfers", refused.Load(), len(h.Requests(hubtest.XetToken)), len(h.Requests(hubtest.Content)))
	}
}

// When the store refuses every token, the file comes by plain HTTP.
func TestStoreRefusesEveryToken(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.AddXet("a.bin", weights(1, 200_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Reconstruction {
			return &hubtest.Fault{Status: 401}
		}
		return nil
	}
	r, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, []string{"a.bin"})
	if n := len(h.Requests(hubtest.XetToken)); n != 2 {
		t.Errorf("%d tokens were asked for, expected the first and one refresh", n)
	}
}

// hub#4223: a 416 inside the known size is never the end of the file.
func TestRangeRefusedIsNotTheEnd(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.AddXet("a.bin", weights(1, 200_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		switch r.Kind {
		case hubtest.Reconstruction, hubtest.Content:
			return &hubtest.Fault{Status: 416}
		}
		return nil
	}
	_, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
	if err == nil || !strings.Contains(err.Error(), "416") {
		t.Errorf("error %v", err)
	}
}

// Two at once: one downloads, the other waits and finds the files there.
func TestTwoAtOnce(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	cfg := testConfig(t, h)
	cfg.DisableXet = true // plain transfers are easy to count
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Content {
			time.Sleep(30 * time.Millisecond)
		}
		return nil
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
			if err != nil {
				t.Error(err)
				return
			}
			sameFiles(t, r.Dir, repo, pipelineFiles)
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, q := range h.Requests(hubtest.Content) {
		if seen[q.Path]++; seen[q.Path] > 1 {
			t.Errorf("%s was fetched %d times", q.Path, seen[q.Path])
		}
	}
}

// Where locks don't hold anybody back, double work is all that happens.
func TestTwoAtOnceWithoutLocks(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	f := repo.AddLFS("a.bin", weights(1, 400_000))
	dir := filepath.Join(t.TempDir(), "blobs")
	blob := filepath.Join(dir, f.SHA256)
	e := Entry{Path: "a.bin", Size: f.Size, SHA256: f.SHA256}
	s, err := newSession(testConfig(t, h), nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		p, err := openPartial(blob, f.SHA256, f.Size)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			j := s.job(Ref{Kind: Model, Repo: "acme/tiny"}, hubtest.DefaultCommit, e)
			if err := j.fill(context.Background(), p); err != nil {
				t.Error(err)
				return
			}
			if err := p.publish(blob); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := filesBelow(t, dir); len(got) != 1 || string(got[f.SHA256]) != string(f.Bytes()) {
		t.Errorf("%d files are there, or the content is wrong", len(got))
	}
}
