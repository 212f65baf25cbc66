package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/hub/xet"
	"github.com/gesso-go/gesso/internal/shareddata"
)

// python runs the real client. GESSO_HUB_PYTHON names an interpreter that has huggingface_hub and hf_xet; without it
// python3 is tried. Where there is none the tests are skipped, or fail if GESSO_REQUIRE_INTEROP=1.
type python struct {
	t       *testing.T
	program string
	env     []string
}

func newPython(t *testing.T, endpoint, home string) python {
	t.Helper()
	p := python{t: t, program: os.Getenv("GESSO_HUB_PYTHON")}
	if p.program == "" {
		p.program = "python3"
	}
	out, err := exec.Command(p.program, "testdata/interop.py", "versions").CombinedOutput()
	if err != nil {
		if os.Getenv("GESSO_REQUIRE_INTEROP") == "1" {
			t.Fatalf("%s: %v\n%s", p.program, err, out)
		}
		t.Skip("no Python with huggingface_hub and hf_xet (GESSO_HUB_PYTHON names one)")
	}
	t.Logf("huggingface_hub, hf_xet %s", bytes.TrimSpace(out))
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HF_") && !strings.Contains(strings.ToLower(kv), "_proxy=") {
			p.env = append(p.env, kv)
		}
	}
	p.env = append(p.env, "HF_HOME="+home, "HF_ENDPOINT="+endpoint, "HF_HUB_DISABLE_PROGRESS_BARS=1",
		"HF_HUB_DISABLE_TELEMETRY=1", "PYTHONDONTWRITEBYTECODE=1")
	return p
}

func (p python) run(result any, args ...string) {
	p.t.Helper()
	cmd := exec.Command(p.program, append([]string{"testdata/interop.py"}, args...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = p.env, &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(out), result)
	}
	if err != nil {
		p.t.Fatalf("python %s: %v\n%s%s", args[0], err, out, stderr.Bytes())
	}
}

// interopHome returns a home folder and a Config that uses the same cache as Python does with it.
func interopHome(t *testing.T, h *hubtest.Server) (string, Config) {
	home := t.TempDir()
	cfg := testConfig(t, h)
	cfg.CacheDir = filepath.Join(home, "hub")
	return home, cfg
}

func noTransfers(t *testing.T, h *hubtest.Server) {
	t.Helper()
	if got := h.Requests(hubtest.Content, hubtest.Xorb, hubtest.Reconstruction, hubtest.Resolve); len(got) > 0 {
		t.Errorf("content was fetched again: %v", kinds(got))
	}
}

func TestInteropPythonsCacheIsFound(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	home, cfg := interopHome(t, h)
	py := newPython(t, h.URL(), home)
	var dir string
	py.run(&dir, append([]string{"download", "acme/tiny"}, pipelineFiles...)...)
	sameFiles(t, dir, repo, pipelineFiles)

	h.Forget()
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Dir != dir || len(h.Requests()) != 1 {
		t.Errorf("folder %s, Python's is %s; requests %v", r.Dir, dir, kinds(h.Requests()))
	}
	offline := cfg
	offline.Offline = true
	if _, err := Pull(context.Background(), offline, "acme/tiny", Options{}); err != nil {
		t.Error(err)
	}

	// The same weights in another repository come from the store that Python keeps for all repositories, and are
	// still there when Python deletes the first one.
	other := h.AddModel("acme/other")
	other.Commit = strings.Repeat("cd", 20) // Python deletes by commit
	same := repo.Files()[slices.IndexFunc(repo.Files(), func(f *hubtest.File) bool { return f.Path == "text_encoder/model.safetensors" })]
	other.AddXet("model.safetensors", same.Bytes())
	h.Forget()
	if r, err = Pull(context.Background(), cfg, "acme/other", Options{}); err != nil {
		t.Fatal(err)
	}
	noTransfers(t, h)
	var freed int64
	py.run(&freed, "delete", "acme/tiny")
	sameFiles(t, r.Dir, other, []string{"model.safetensors"})
	py.run(&dir, "cached", "acme/other")
	if dir != r.Dir {
		t.Errorf("Python finds %s, Gesso made %s", dir, r.Dir)
	}
}

func TestInteropPythonFindsOurs(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := hubtest.New()
		defer h.Close()
		repo := h.AddModel("acme/tiny")
		addPipeline(repo)
		home, cfg := interopHome(t, h)
		cfg.DisableXet = plain
		py := newPython(t, h.URL(), home)
		r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
		if err != nil {
			t.Fatal(err)
		}
		h.Forget()
		var dir string
		py.run(&dir, append([]string{"cached", "acme/tiny"}, pipelineFiles...)...)
		if dir != r.Dir || len(h.Requests()) > 0 {
			t.Errorf("Python finds %s, Gesso made %s; requests %v", dir, r.Dir, kinds(h.Requests()))
		}
		py.run(&dir, append([]string{"download", "acme/tiny"}, pipelineFiles...)...)
		noTransfers(t, h)
		var scan struct {
			Warnings, Incomplete []string
			Repos                map[string]struct {
				Files int
				Refs  []string
			}
		}
		py.run(&scan, "scan")
		found := scan.Repos["acme/tiny"]
		if len(scan.Warnings)+len(scan.Incomplete) > 0 || !slices.Equal(found.Refs, []string{"main"}) || found.Files != 9 {
			t.Errorf("Python's scan: %+v", scan)
		}
		// What Python adds, it adds to ours.
		py.run(&dir, "download", "acme/tiny")
		var all []string
		for _, f := range repo.Files() {
			all = append(all, f.Path)
		}
		sameFiles(t, r.Dir, repo, all)
		var freed int64
		py.run(&freed, "delete", "acme/tiny")
		if _, err := os.Stat(r.Dir); err == nil {
			t.Error("Python can't delete what Gesso made")
		}
	}
}

// Xorbs, shards and hashes of the official uploader.
func TestInteropUploadedFiles(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	home, cfg := interopHome(t, h)
	py := newPython(t, h.URL(), home)
	shared := weights(1, 700_000)
	content := map[string][]byte{
		"floats.bin":   shared,
		"twice.bin":    append(append(randomBytes(2, 123_456), shared...), shared[200_000:600_000]...),
		"random.bin":   randomBytes(3, 500_001),
		"text.txt":     bytes.Repeat([]byte("all work and no play makes jack a dull boy\n"), 9000),
		"zeros.bin":    make([]byte, 1_000_000),
		"small.txt":    []byte("hello world"),
		"boundary.bin": randomBytes(4, xet.MinChunk),
	}
	var names, paths []string
	dir := t.TempDir()
	for name, data := range content {
		names = append(names, name)
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var uploaded, hashed []string
	py.run(&uploaded, append([]string{"upload", h.URL()}, paths...)...)
	py.run(&hashed, append([]string{"hash"}, paths...)...)
	repo := h.AddModel("acme/tiny")
	for i, name := range names {
		data := content[name]
		got, _, err := xet.Sum(bytes.NewReader(data))
		if err != nil || got.String() != uploaded[i] || got.String() != hashed[i] {
			t.Errorf("%s: hash %s, %v; Python's are %s and %s", name, got, err, uploaded[i], hashed[i])
		}
		if !h.Stored(got) {
			t.Fatalf("%s didn't reach the store", name)
		}
		sum := sha256Hex(data)
		repo.AddKnown(name, int64(len(data)), sum, got, bytes.NewReader(data))
	}
	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, names)
	if n := len(h.Requests(hubtest.Content)); n > 0 {
		t.Errorf("%d files came by plain HTTP", n)
	}
}

// A xorb and a shard that the official uploader sent, without Python: three files of one xorb, whose terms overlap,
// repeat and come in any order.
func TestPullStoredUpload(t *testing.T) {
	dir := shareddata.Dir(t, "data", "xet")
	read := func(elem ...string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(elem...))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	h := hubtest.New()
	defer h.Close()
	xorb := read(dir, "673f9d18e8bd04ae912dda73037f080a100c4169829ea793990ddb8cd88ef091.xorb")
	_, leaves, err := xet.ReadXorb(xorb)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.AddXorb(xorb, leaves); err != nil {
		t.Fatal(err)
	}
	if err := h.AddShard(read(dir, "upload.shard.bin")); err != nil {
		t.Fatal(err)
	}
	var files map[string]struct {
		Xet    string `json:"xet_hash"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(read(dir, "files.json"), &files); err != nil {
		t.Fatal(err)
	}
	repo := h.AddModel("acme/tiny")
	for name, f := range files {
		hash, err := xet.ParseHash(f.Xet)
		if err != nil {
			t.Fatal(err)
		}
		if h.Stored(hash) {
			repo.AddKnown(name, f.Size, f.SHA256, hash, nil)
		}
	}
	if n := len(repo.Files()); n < 3 {
		t.Fatalf("the shard has %d of the files", n)
	}
	r, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{Include: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range repo.Files() {
		if got := sha256Hex(read(r.Dir, f.Path)); got != f.SHA256 {
			t.Errorf("%s: sha256 %s, want %s", f.Path, got, f.SHA256)
		}
	}
	if len(h.Requests(hubtest.Content)) > 0 {
		t.Error("files came by plain HTTP")
	}
}
