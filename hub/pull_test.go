package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gesso-go/gesso/hub/hubtest"
)

// fakeClock doesn't wait, and remembers for how long it was asked to.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.IsZero() {
		c.now = time.Now()
	}
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	return ctx.Err()
}

func testConfig(t testing.TB, h *hubtest.Server) Config {
	return Config{
		Endpoint: h.URL(), CacheDir: filepath.Join(t.TempDir(), "hub"), Clock: &fakeClock{},
		Timeout: 2 * time.Second, Token: h.Token,
	}
}

func randomBytes(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// weights are bytes that compress like floats: their fourth byte hardly varies.
func weights(seed uint64, n int) []byte {
	b := randomBytes(seed, n)
	for i := 3; i < n; i += 4 {
		b[i] = 0x3c + b[i]%3
	}
	return b
}

const modelIndexJSON = `{"_class_name": "FluxPipeline", "_diffusers_version": "0.30.0",
 "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"], "text_encoder": ["transformers", "CLIPTextModel"],
 "tokenizer": ["transformers", "CLIPTokenizer"], "transformer": ["diffusers", "FluxTransformer2DModel"],
 "vae": ["diffusers", "AutoencoderKL"], "image_encoder": [null, null]}`

// addPipeline fills a repository with a small pipeline, and with much that no pipeline needs.
func addPipeline(r *hubtest.Repo) {
	r.Add("model_index.json", []byte(modelIndexJSON))
	r.Add("README.md", []byte("---\nlicense: apache-2.0\n---\n# tiny\n"))
	r.Add(".gitattributes", []byte("*.safetensors filter=lfs\n"))
	r.Add("scheduler/scheduler_config.json", []byte("{}"))
	r.Add("tokenizer/vocab.json", []byte(`{"a": 0}`))
	r.Add("tokenizer/merges.txt", []byte("#version: 0.2\n"))
	r.Add("text_encoder/config.json", []byte("{}"))
	r.Add("text_encoder/generation_config.json", []byte("{}"))
	r.AddXet("text_encoder/model.safetensors", weights(1, 300_000))
	r.AddXet("text_encoder/pytorch_model.bin", weights(2, 300_000))
	r.Add("transformer/config.json", []byte("{}"))
	r.Add("transformer/diffusion_pytorch_model.safetensors.index.json", []byte(`{"weight_map": {"a": "diffusion_pytorch_model-00001-of-00002.safetensors", "b": "diffusion_pytorch_model-00002-of-00002.safetensors"}}`))
	shared := weights(3, 400_000)
	r.AddXet("transformer/diffusion_pytorch_model-00001-of-00002.safetensors", shared)
	r.AddXet("transformer/diffusion_pytorch_model-00002-of-00002.safetensors", append(weights(4, 500_000), shared[100_000:]...))
	r.Add("vae/config.json", []byte("{}"))
	r.AddLFS("vae/diffusion_pytorch_model.safetensors", weights(5, 200_000))
	r.AddXet("flux1-tiny.safetensors", weights(6, 100_000))
	r.AddLFS("sample.png", randomBytes(7, 50_000))
}

var pipelineFiles = []string{
	"model_index.json", "scheduler/scheduler_config.json", "text_encoder/config.json", "text_encoder/model.safetensors",
	"tokenizer/merges.txt", "tokenizer/vocab.json", "transformer/config.json",
	"transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
	"transformer/diffusion_pytorch_model-00002-of-00002.safetensors",
	"transformer/diffusion_pytorch_model.safetensors.index.json", "vae/config.json", "vae/diffusion_pytorch_model.safetensors",
}

// filesBelow returns the files of a folder by path, links followed.
func filesBelow(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		data, err := os.ReadFile(p)
		out[filepath.ToSlash(rel)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sameFiles fails unless the folder has exactly the named files of the repository.
func sameFiles(t testing.TB, dir string, r *hubtest.Repo, names []string) {
	t.Helper()
	got := filesBelow(t, dir)
	want := map[string]*hubtest.File{}
	for _, f := range r.Files() {
		want[f.Path] = f
	}
	for _, n := range names {
		data, ok := got[n]
		switch {
		case !ok:
			t.Errorf("%s is missing", n)
		case !bytes.Equal(data, want[n].Bytes()):
			t.Errorf("%s differs: %d bytes, want %d", n, len(data), want[n].Size)
		}
		delete(got, n)
	}
	for n := range got {
		t.Errorf("%s is there, and was not wanted", n)
	}
}

func kinds(requests []hubtest.Request) (out []string) {
	for _, r := range requests {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

func TestPullFetchesWhatAPipelineNeeds(t *testing.T) {
	for _, mode := range []string{"xet", "xet v1", "many ranges", "plain", "no xet on the hub", "no listing", "small pages"} {
		t.Run(mode, func(t *testing.T) {
			h := hubtest.New()
			defer h.Close()
			h.Token = "hf_secret"
			h.XorbCut = 100_000
			cfg := testConfig(t, h)
			switch mode {
			case "xet v1":
				h.NoV2 = true
			case "many ranges":
				h.ManyRanges = true
			case "plain":
				cfg.DisableXet = true
			case "no xet on the hub":
				h.NoXet = true
			case "no listing":
				h.NoTree = true
			case "small pages":
				h.Page = 3
			}
			repo := h.AddModel("acme/tiny")
			addPipeline(repo)
			r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, r.Dir, repo, pipelineFiles)
			if want := filepath.Join(cfg.CacheDir, "models--acme--tiny", "snapshots", hubtest.DefaultCommit); r.Dir != want {
				t.Errorf("folder %s, want %s", r.Dir, want)
			}
			xorbs, contents := len(h.Requests(hubtest.Xorb)), len(h.Requests(hubtest.Content))
			if plain := mode == "plain" || mode == "no xet on the hub"; plain != (xorbs == 0) || contents == 0 {
				t.Errorf("%d requests for xorbs, %d for plain content", xorbs, contents)
			}
			for _, q := range h.Requests() {
				if q.OnCDN && q.Auth != "" {
					t.Errorf("the content server got %q", q.Auth)
				}
			}

			h.Forget()
			again, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
			if err != nil || again.Dir != r.Dir {
				t.Fatalf("second pull: %v, %v", again, err)
			}
			most := 1
			if mode == "no listing" {
				most = 1
			}
			if got := h.Requests(); len(got) > most {
				t.Errorf("a warm cache took %d requests: %v", len(got), kinds(got))
			}
			h.Forget()
			if _, err := Pull(context.Background(), cfg, "acme/tiny@"+hubtest.DefaultCommit, Options{}); err != nil {
				t.Fatal(err)
			}
			if got := h.Requests(); len(got) > 0 {
				t.Errorf("a cached commit took requests: %v", kinds(got))
			}
			left, _ := filepath.Glob(filepath.Join(cfg.CacheDir, "models--acme--tiny", "blobs", "*incomplete*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPullCacheLayout(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	cfg := testConfig(t, h)
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cfg.CacheDir, "models--acme--tiny")
	if ref, err := os.ReadFile(filepath.Join(dir, "refs", "main")); err != nil || string(ref) != hubtest.DefaultCommit {
		t.Errorf("refs/main is %q, %v", ref, err)
	}
	for _, f := range repo.Files() {
		if !slices.Contains(pipelineFiles, f.Path) {
			continue
		}
		etag := f.SHA256
		if etag == "" {
			etag = f.Git
		}
		link, err := os.Readlink(filepath.Join(dir, "snapshots", hubtest.DefaultCommit, f.Path))
		want := strings.Repeat("../", 2+strings.Count(f.Path, "/")) + "blobs/" + etag
		if err != nil || link != want {
			t.Errorf("%s leads to %q, %v, want %q", f.Path, link, err, want)
		}
		if _, err := os.Lstat(filepath.Join(cfg.CacheDir, ".locks", "models--acme--tiny", etag+".lock")); err != nil {
			t.Errorf("no lock file: %v", err)
		}
	}
	for _, name := range []string{"CACHEDIR.TAG", "models--acme--tiny/trees/" + hubtest.DefaultCommit + ".json"} {
		if _, err := os.Stat(filepath.Join(cfg.CacheDir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestPullIncludeExcludeAndPaths(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	ctx := context.Background()
	for _, c := range []struct {
		ref  string
		opt  Options
		want []string
	}{
		{"acme/tiny", Options{Include: []string{"*.png", "README.md"}}, []string{"README.md", "sample.png"}},
		{"acme/tiny", Options{Include: []string{"vae/"}, Exclude: []string{"*.safetensors"}}, []string{"vae/config.json"}},
		{"hf://acme/tiny/vae", Options{}, []string{"vae/config.json", "vae/diffusion_pytorch_model.safetensors"}},
		{"hf://acme/tiny@main/flux1-tiny.safetensors", Options{}, []string{"flux1-tiny.safetensors"}},
		{h.URL() + "/acme/tiny/blob/main/sample.png", Options{}, []string{"sample.png"}},
	} {
		cfg := testConfig(t, h)
		r, err := Pull(ctx, cfg, c.ref, c.opt)
		if err != nil {
			t.Errorf("%s: %v", c.ref, err)
			continue
		}
		sameFiles(t, r.Dir, repo, c.want)
	}
	cfg := testConfig(t, h)
	path, err := Resolve(ctx, cfg, "hf://acme/tiny/sample.png", Options{})
	if err != nil || filepath.Base(path) != "sample.png" {
		t.Errorf("Resolve = %s, %v", path, err)
	}
	if _, err := Resolve(ctx, cfg, "hf://acme/tiny/nothing.png", Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that isn't there: %v", err)
	}
	if got, err := Resolve(ctx, cfg, filepath.Dir(path), Options{}); err != nil || got != filepath.Dir(path) {
		t.Errorf("a local folder: %s, %v", got, err)
	}
	if _, err := Resolve(ctx, cfg, "./nowhere", Options{}); err == nil {
		t.Error("a local folder that isn't there was resolved")
	}
}

func TestPullDryRunFetchesNothing(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	addPipeline(h.AddModel("acme/tiny"))
	cfg := testConfig(t, h)
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Path)
		if f.Cached {
			t.Errorf("%s counts as cached", f.Path)
		}
	}
	if !slices.Equal(names, pipelineFiles) {
		t.Errorf("files %v", names)
	}
	if _, err := os.Stat(cfg.CacheDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run made the cache folder: %v", err)
	}
}

func TestPullBucket(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := hubtest.New()
		defer h.Close()
		b := h.AddBucket("acme/stuff")
		b.AddXet("loras/one.safetensors", weights(1, 300_000))
		b.AddXet("loras/two.safetensors", weights(2, 200_000))
		b.AddXet("loras/empty", nil)
		b.AddXet("other.txt", []byte("hello"))
		cfg := testConfig(t, h)
		cfg.DisableXet = plain
		r, err := Pull(context.Background(), cfg, "hf://buckets/acme/stuff/loras", Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, r.Dir, b, []string{"loras/one.safetensors", "loras/two.safetensors", "loras/empty"})

		// Buckets change in place; what doesn't change isn't fetched again.
		b.AddXet("loras/two.safetensors", weights(3, 210_000))
		h.Forget()
		if r, err = Pull(context.Background(), cfg, "hf://buckets/acme/stuff/loras", Options{}); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, r.Dir, b, []string{"loras/one.safetensors", "loras/two.safetensors", "loras/empty"})
		for _, q := range h.Requests(hubtest.Content, hubtest.Reconstruction) {
			if strings.Contains(q.Path, "one") {
				t.Errorf("fetched again: %s", q.Path)
			}
		}
	}
}

func TestPullRevision(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	repo.Add("a.txt", []byte("a"))
	cfg := testConfig(t, h)
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{Revision: "refs/pr/1"}); err != nil {
		t.Fatal(err)
	}
	if ref, _ := os.ReadFile(filepath.Join(cfg.CacheDir, "models--acme--tiny", "refs", "refs", "pr", "1")); string(ref) != hubtest.DefaultCommit {
		t.Errorf("ref of the pull request is %q", ref)
	}
	if got := h.Requests(hubtest.Info); len(got) != 1 || got[0].Path != "/api/models/acme/tiny/revision/refs%2Fpr%2F1" {
		t.Errorf("asked for %v", kinds(got))
	}
	_, err := Pull(context.Background(), cfg, "acme/tiny@v9", Options{})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no revision v9") {
		t.Errorf("unknown revision: %v", err)
	}
}

func TestPullSharesBlobsBetweenRepositories(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	data := weights(9, 300_000)
	one, two := h.AddModel("acme/one"), h.AddModel("acme/two")
	one.AddXet("t5.safetensors", data)
	two.AddXet("text.safetensors", data)
	cfg := testConfig(t, h)
	a, err := Pull(context.Background(), cfg, "acme/one", Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Forget()
	b, err := Pull(context.Background(), cfg, "acme/two", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.Requests(hubtest.Xorb, hubtest.Content)); n > 0 {
		t.Errorf("%d requests for content that is in the cache", n)
	}
	x, _ := os.Stat(filepath.Join(a.Dir, "t5.safetensors"))
	y, _ := os.Stat(filepath.Join(b.Dir, "text.safetensors"))
	if !os.SameFile(x, y) {
		t.Error("there are two copies on the disk")
	}
}

func TestTokenStaysOnItsOrigin(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	h.Token = "hf_secret"
	repo := h.AddModel("acme/tiny")
	repo.AddLFS("a.bin", randomBytes(1, 1000))
	repo.AddXet("b.bin", randomBytes(2, 1000))
	repo.Add("c.txt", []byte("c"))
	// The content server of this test is another port of the same host: still another origin.
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Tree {
			return &hubtest.Fault{Header: http.Header{"Link": {fmt.Sprintf("<%s/api/next>; rel=\"next\"", h.CDN())}}}
		}
		return nil
	}
	cfg := testConfig(t, h)
	var said strings.Builder
	cfg.Warn = func(m string) { said.WriteString(m) }
	_, err := Pull(context.Background(), cfg, "acme/tiny", Options{Progress: func(e Event) { said.WriteString(e.Message) }})
	if err == nil {
		t.Error("a listing that leads to another server and fails there was taken for whole")
	}
	h.Fault = nil
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	onCDN := 0
	for _, q := range h.Requests() {
		if q.OnCDN {
			onCDN++
			if q.Auth != "" {
				t.Errorf("%s carried %q", q.Path, q.Auth)
			}
		} else if q.Kind == hubtest.Xorb && q.Auth != "" {
			t.Errorf("signed address carried %q", q.Auth)
		}
	}
	if onCDN < 2 {
		t.Errorf("%d requests reached the content server", onCDN)
	}
	if strings.Contains(said.String()+fmt.Sprint(err), "hf_secret") {
		t.Error("the token was told")
	}
}

// Files with the same content are one transfer, and nobody waits for it.
func TestPullFetchesEqualFilesOnce(t *testing.T) {
	for _, links := range []bool{true, false} {
		h := hubtest.New()
		defer h.Close()
		repo := h.AddModel("acme/tiny")
		var names []string
		for i := range 6 {
			for name, data := range map[string][]byte{"%d/config.json": []byte("{}"), "%d.bin": weights(1, 50_000)} {
				name = fmt.Sprintf(name, i)
				names = append(names, name)
				if strings.HasSuffix(name, ".bin") {
					repo.AddLFS(name, data)
				} else {
					repo.Add(name, data)
				}
			}
		}
		cfg := testConfig(t, h)
		cfg.DisableSymlinks = !links
		var planned int64
		r, err := Pull(context.Background(), cfg, "acme/tiny", Options{Progress: func(e Event) {
			switch e.Kind {
			case Planned:
				planned = e.Size
			case Waiting:
				t.Error(e.Message)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, r.Dir, repo, names)
		if n := len(h.Requests(hubtest.Content)); n != 1 {
			t.Errorf("links %v: %d downloads of one content", links, n)
		}
		if links && planned != 50_002 {
			t.Errorf("%d bytes were announced, there are 50002", planned)
		}
	}
}

// A name that can't be a file here matters only if the file is wanted.
func TestPullIgnoresUnwantedNames(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	for _, name := range []string{`old\weights.bin`, "note: todo.txt", "C:/x", "../x", "line\nbreak", "\x1b[2J"} {
		repo.Add(name, []byte("x"))
	}
	cfg := testConfig(t, h)
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, pipelineFiles)
	h.Forget()
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil || len(h.Requests()) != 1 {
		t.Errorf("again: %d requests, %v", len(h.Requests()), err)
	}
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{Include: []string{"old*"}}); err == nil || !strings.Contains(err.Error(), "unsafe path") {
		t.Errorf("a wanted one: %v", err)
	}
}

// Choosing among many files takes time in proportion.
func TestChooseOfMany(t *testing.T) {
	var entries []Entry
	for i := range 200_000 {
		entries = append(entries, Entry{Path: fmt.Sprintf("folder/%06d.json", i), Size: 1, Git: "aa"})
	}
	began := time.Now()
	chosen, err := choose(Ref{Kind: Dataset, Repo: "acme/many"}, entries, Options{Exclude: []string{"*9.json"}}, nil)
	if err != nil || len(chosen) != 180_000 {
		t.Fatalf("%d files, %v", len(chosen), err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A damaged listing in the cache counts as none: it is fetched again and repaired, and where the Hub can't be asked the
// snapshot itself is taken.
func TestDamagedListing(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `{"format_version": 1}`, `{"format_version": 9, "files": {}}`, `{"format_version": 1, "files": {"../x": {}}}`} {
		h := hubtest.New()
		defer h.Close()
		repo := h.AddModel("acme/tiny")
		repo.AddXet("a.bin", weights(1, 100_000))
		cfg := testConfig(t, h)
		if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
			t.Fatal(err)
		}
		listing := filepath.Join(cfg.CacheDir, "models--acme--tiny", "trees", hubtest.DefaultCommit+".json")
		good, err := os.ReadFile(listing)
		if err != nil {
			t.Fatal(err)
		}
		damage := func() {
			t.Helper()
			if err := os.WriteFile(listing, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		damage()
		offline := cfg
		offline.Offline = true
		r, err := Pull(context.Background(), offline, "acme/tiny", Options{})
		if err != nil {
			t.Fatalf("%q offline: %v", text, err)
		}
		sameFiles(t, r.Dir, repo, []string{"a.bin"})
		if err := os.Remove(filepath.Join(r.Dir, "a.bin")); err != nil { // what is complete needs no listing
			t.Fatal(err)
		}
		h.Forget()
		if r, err = Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		sameFiles(t, r.Dir, repo, []string{"a.bin"})
		if n := len(h.Requests(hubtest.Content, hubtest.Xorb)); n > 0 {
			t.Errorf("%q: %d requests for what is there", text, n)
		}
		if now, err := os.ReadFile(listing); err != nil || !bytes.Equal(now, good) {
			t.Errorf("%q: the listing is now %s, %v", text, now, err)
		}
	}
}
