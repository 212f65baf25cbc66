package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/hub/hubtest"
)

// fakeHub starts a Hub with the tiny checkpoint as acme/tiny, beside files that no pipeline needs. The environment makes
// the commands use it, with a cache of their own.
func fakeHub(t *testing.T) (*hubtest.Server, *hubtest.Repo, map[string]string) {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	repo := h.AddModel("acme/tiny")
	addFolder(t, repo, checkpoint)
	repo.Add("README.md", []byte("---\nlicense: apache-2.0\n---\n"))
	repo.AddXet("flux1-tiny.safetensors", bytes.Repeat([]byte("single file"), 1000))
	return h, repo, map[string]string{"HF_HOME": t.TempDir(), "HF_ENDPOINT": h.URL()}
}

func addFolder(t *testing.T, repo *hubtest.Repo, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		if strings.HasSuffix(path, ".safetensors") {
			repo.AddXet(path, data)
		} else {
			repo.Add(path, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func with(env map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for k, v := range env {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

func TestPullThenGenerate(t *testing.T) {
	h, _, env := fakeHub(t)
	code, stdout, stderr := command(t, env, "pull", "acme/tiny")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	dir := strings.TrimSuffix(stdout, "\n")
	if want := filepath.Join(env["HF_HOME"], "hub", "models--acme--tiny", "snapshots", hubtest.DefaultCommit); dir != want {
		t.Errorf("pull printed %q, want %q", dir, want)
	}
	for _, unwanted := range []string{"README.md", "flux1-tiny.safetensors"} {
		if _, err := os.Stat(filepath.Join(dir, unwanted)); err == nil {
			t.Errorf("%s was downloaded", unwanted)
		}
	}
	h.Forget()
	png := filepath.Join(t.TempDir(), "a.png")
	if code, _, stderr = command(t, env, small("--model", "acme/tiny", "--seed", "1", "-o", png, "x")...); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if n := len(h.Requests()); n != 1 {
		t.Errorf("generate with a warm cache sent %d requests, expected 1", n)
	}
	if _, stdout, _ = command(t, env, "show", png); !strings.Contains(stdout, "repository: acme/tiny\n") || !strings.Contains(stdout, "commit: "+hubtest.DefaultCommit+"\n") {
		t.Errorf("the picture doesn't name its model's origin: %s", stdout)
	}
	local := filepath.Join(t.TempDir(), "b.png")
	if code, _, stderr = command(t, env, small("--model", checkpoint, "--seed", "1", "-o", local, "x")...); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if a, b := pixels(t, png), pixels(t, local); !bytes.Equal(a, b) {
		t.Error("the pulled model makes another picture than the folder")
	}
}

// pixels returns the compressed pixels of a PNG: its texts name the model.
func pixels(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("IDAT"))
	if at < 0 {
		t.Fatalf("%s has no pixels", path)
	}
	return data[at:]
}

// A device that isn't there is found out before the model is downloaded.
func TestDeviceBeforeDownload(t *testing.T) {
	h, _, env := fakeHub(t)
	none := filepath.Join(t.TempDir(), "none.so")
	t.Setenv("GESSO_PLUGIN_XLA_CPU", none)
	for want, args := range map[string][]string{none: {"--device", "xla-cpu"}, "sse9": {"--device", "cpu"}} {
		if want == "sse9" {
			env = with(env, "GESSO_CPU_ISA", want)
		}
		code, _, stderr := command(t, env, small(append(args, "--model", "acme/tiny", "-o", filepath.Join(t.TempDir(), "x.png"), "x")...)...)
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

func TestGenerateDownloadsWhatIsMissing(t *testing.T) {
	h, _, env := fakeHub(t)
	for _, model := range []string{"hf://acme/tiny", "acme/tiny@main", h.URL() + "/acme/tiny/tree/main"} {
		out := filepath.Join(t.TempDir(), "x.png")
		code, stdout, stderr := command(t, env, small("--model", model, "--seed", "1", "-o", out, "x")...)
		if code != exitOK || stdout != out+"\n" {
			t.Errorf("%s: exit %d, %q, %s", model, code, stdout, stderr)
		}
	}
	if n := len(h.Requests(hubtest.Xorb)); n == 0 {
		t.Error("nothing was downloaded")
	}
	out := filepath.Join(t.TempDir(), "x.png")
	code, _, stderr := command(t, env, small("--model", "acme/tiny", "--revision", "v9", "-o", out, "x")...)
	if code != exitFailed || !strings.Contains(stderr, "no revision v9") {
		t.Errorf("unknown revision: exit %d, %s", code, stderr)
	}
}

// huggingface_hub#3371: with the Hub down or the network off, a half-empty snapshot was taken for a model.
func TestGenerateWithoutTheHub(t *testing.T) {
	for _, how := range []string{"offline", "hub is down"} {
		t.Run(how, func(t *testing.T) {
			h, _, env := fakeHub(t)
			down := func() map[string]string {
				if how == "offline" {
					return with(env, "HF_HUB_OFFLINE", "1")
				}
				h.Fault = func(*hubtest.Request) *hubtest.Fault { return &hubtest.Fault{Status: 503} }
				return env
			}
			if code, _, stderr := command(t, env, "pull", "acme/tiny"); code != exitOK {
				t.Fatal(stderr)
			}
			out := filepath.Join(t.TempDir(), "x.png")
			args := small("--model", "acme/tiny", "--seed", "1", "-o", out, "x")
			h.Forget()
			if code, _, stderr := command(t, down(), args...); code != exitOK {
				t.Fatalf("a complete snapshot was refused: %s", stderr)
			}
			if how == "offline" && len(h.Requests()) > 0 {
				t.Error("requests were sent in offline mode")
			}
			os.Remove(out)
			folder := filepath.Join(env["HF_HOME"], "hub", "models--acme--tiny")
			snapshot := filepath.Join(folder, "snapshots", hubtest.DefaultCommit)
			gone := []string{"vae/diffusion_pytorch_model.safetensors", "tokenizer/vocab.json"}
			for _, name := range gone {
				blob, err := filepath.EvalSymlinks(filepath.Join(snapshot, name))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(blob); err != nil {
					t.Fatal(err)
				}
			}
			if how != "offline" {
				return // the Hub would be asked again and again, for real seconds; package hub tests that with a clock of its own
			}
			code, _, stderr := command(t, down(), args...)
			if code != exitFailed {
				t.Errorf("exit %d for an incomplete snapshot", code)
			}
			for _, name := range append(gone, "incomplete", "HF_HUB_OFFLINE") {
				if !strings.Contains(stderr, name) {
					t.Errorf("%q doesn't say %s", stderr, name)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a picture was written")
			}
		})
	}
}

func TestPullFlags(t *testing.T) {
	_, repo, env := fakeHub(t)
	code, stdout, stderr := command(t, env, "pull", "--dry-run", "acme/tiny")
	if code != exitOK || !strings.Contains(stdout, "vae/diffusion_pytorch_model.safetensors") || !strings.Contains(stdout, "would be downloaded") || strings.Contains(stdout, "flux1-tiny") {
		t.Errorf("dry run: exit %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(env["HF_HOME"], "hub")); err == nil {
		t.Error("a dry run made the cache")
	}
	read := func(args ...string) (p pulled) {
		t.Helper()
		code, stdout, stderr := command(t, env, append([]string{"pull", "--json"}, args...)...)
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	names := func(p pulled) (out []string) {
		for _, f := range p.Files {
			out = append(out, f.Path)
		}
		return out
	}
	p := read("--include", "*.json", "--include", "README.md", "--exclude", "*/*", "acme/tiny")
	if want := []string{"README.md", "model_index.json"}; !slices.Equal(names(p), want) || p.Commit != repo.Commit || p.Repository != "acme/tiny" {
		t.Errorf("files %v, want %v (%+v)", names(p), want, p)
	}
	if p.Size != p.Download || p.Size == 0 {
		t.Errorf("%d bytes, %d downloaded", p.Size, p.Download)
	}
	if p = read("--include", "README.md", "acme/tiny"); p.Download != 0 || !p.Files[0].Cached {
		t.Errorf("the second time: %+v", p)
	}
	if p = read("hf://acme/tiny/README.md"); filepath.Base(p.Path) != "README.md" {
		t.Errorf("path of a file: %s", p.Path)
	}
	if p = read("--revision", "refs/pr/1", "--dry-run", "acme/tiny"); p.Download == 0 || len(p.Files) < 5 {
		t.Errorf("dry run of a revision: %+v", p)
	}
	code, _, stderr = command(t, env, "pull", "--variant", "fp16", "acme/tiny")
	if code != exitFailed || !strings.Contains(stderr, `no variant "fp16"`) {
		t.Errorf("unknown variant: exit %d, %s", code, stderr)
	}
}

func TestHubErrors(t *testing.T) {
	h, _, env := fakeHub(t)
	h.AddModel("acme/gated").Gated = true
	if code, _, stderr := command(t, env, "pull", "--quiet", "acme/tiny"); code != exitOK {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		code int
		want []string
	}{
		{"gated", []string{"pull", "acme/gated"}, env, exitFailed, []string{"is gated", h.URL() + "/acme/gated", "HF_TOKEN"}},
		{"gated, with a token", []string{"pull", "acme/gated"}, with(env, "HF_TOKEN", "hf_secret"), exitFailed, []string{"accept the licence", "/acme/gated"}},
		{"unknown", []string{"pull", "acme/tinny"}, env, exitFailed, []string{"no model acme/tinny", "did you mean acme/tiny"}},
		{"unknown model to generate", small("--model", "acme/tinny", "-o", "x.png", "x"), env, exitFailed, []string{"did you mean acme/tiny", "nor is there a folder acme/tinny"}},
		{"no repository to generate", small("--model", "tinny", "-o", "x.png", "x"), env, exitUsage, []string{"--model", "tinny", "no such folder"}},
		{"revision of a folder", small("--model", checkpoint, "--revision", "v1", "-o", "x.png", "x"), env, exitUsage, []string{"--revision"}},
		{"bad reference", []string{"pull", "acme/../tiny"}, env, exitUsage, []string{"not a model reference"}},
		{"bad revision", []string{"pull", "acme/tiny", "--revision", "../x"}, env, exitUsage, []string{"revision", "../x"}},
		{"two revisions", []string{"pull", "acme/tiny@main", "--revision", "v1"}, env, exitUsage, []string{"main", "v1"}},
		{"two revisions to generate", small("--model", "acme/tiny@main", "--revision", "v1", "-o", "x.png", "x"), env, exitUsage, []string{"--model", "main", "v1"}},
		{"revision of a bucket", []string{"pull", "hf://buckets/acme/b", "--revision", "v1"}, env, exitUsage, []string{"no revisions"}},
		{"offline", []string{"pull", "acme/other"}, with(env, "HF_HUB_OFFLINE", "1"), exitFailed, []string{"acme/other is not in the cache", "HF_HUB_OFFLINE"}},
		{"offline to generate", small("--model", "acme/other", "-o", "x.png", "x"), with(env, "HF_HUB_OFFLINE", "1"), exitFailed, []string{"HF_HUB_OFFLINE", "nor is there a folder acme/other"}},
		{"show unknown", []string{"show", "acme/tinny"}, env, exitFailed, []string{"no model acme/tinny", "nor is there a folder"}},
		{"show nothing", []string{"show", "./nothing"}, env, exitFailed, []string{"./nothing"}},
		{"show no picture", []string{"show", "nothing.png"}, env, exitFailed, []string{"nothing.png"}},
		{"rm unknown", []string{"rm", "acme/tinny"}, env, exitFailed, []string{"not in the cache", "did you mean acme/tiny"}},
		{"rm unknown revision", []string{"rm", "acme/tiny@v9"}, env, exitFailed, []string{"no revision v9"}},
		{"rm a file", []string{"rm", "hf://acme/tiny/README.md"}, env, exitFailed, []string{"part of a repository"}},
		{"rm nothing", []string{"rm"}, env, exitUsage, []string{"one or more"}},
		{"pull nothing", []string{"pull"}, env, exitUsage, []string{"one repository"}},
		{"xet nothing", []string{"xet", "hash"}, env, exitUsage, []string{"one or more files"}},
		{"xet unknown", []string{"xet", "sum"}, env, exitUsage, []string{"sum"}},
		{"xet no file", []string{"xet", "hash", "nothing"}, env, exitFailed, []string{"nothing"}},
		{"bad setting", []string{"pull", "acme/tiny"}, with(env, "HF_HUB_DOWNLOAD_TIMEOUT", "soon"), exitFailed, []string{"HF_HUB_DOWNLOAD_TIMEOUT=soon"}},
		{"bad endpoint", []string{"list"}, with(env, "HF_ENDPOINT", "huggingface"), exitFailed, []string{"HF_ENDPOINT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := command(t, c.env, c.args...)
			if code != c.code || stdout != "" {
				t.Errorf("exit %d, want %d; stdout %q", code, c.code, stdout)
			}
			last := strings.TrimSuffix(stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:], "\n")
			if !strings.HasPrefix(last, "gesso: ") || strings.Contains(stderr, "hf_secret") {
				t.Errorf("stderr %q", stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(last, w) {
					t.Errorf("%q does not say %q", last, w)
				}
			}
		})
	}
}

func TestListAndRemove(t *testing.T) {
	h, repo, env := fakeHub(t)
	if code, stdout, stderr := command(t, env, "list"); code != exitOK || stdout != "" || !strings.Contains(stderr, "no models") {
		t.Errorf("an empty cache: exit %d, %q, %q", code, stdout, stderr)
	}
	pull := func(ref string) {
		t.Helper()
		if code, _, stderr := command(t, env, "pull", ref); code != exitOK {
			t.Fatal(stderr)
		}
	}
	// A second commit with one file changed, and another repository with weights that acme/tiny has too.
	pull("acme/tiny")
	first := repo.Commit
	repo.Commit = strings.Repeat("ab", 20)
	repo.Add("scheduler/scheduler_config.json", []byte(`{"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 1.5}`))
	pull("acme/tiny")
	other := h.AddModel("acme/other")
	vae, err := os.ReadFile(filepath.Join(checkpoint, "vae/diffusion_pytorch_model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	other.AddXet("vae.safetensors", vae)
	pull("acme/other")

	sizes := func() (total int64, repos map[string]cachedRepo) {
		t.Helper()
		var l struct {
			Size         int64
			Repositories []cachedRepo
		}
		code, stdout, stderr := command(t, env, "list", "--json")
		if code != exitOK {
			t.Fatal(stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &l); err != nil {
			t.Fatal(err)
		}
		repos = map[string]cachedRepo{}
		for _, r := range l.Repositories {
			repos[r.Repository] = r
		}
		return l.Size, repos
	}
	total, repos := sizes()
	tiny := repos["acme/tiny"]
	if len(repos) != 2 || len(tiny.Revisions) != 2 || repos["acme/other"].Size != int64(len(vae)) {
		t.Fatalf("list: %+v", repos)
	}
	if total != tiny.Size { // what acme/other has is a second name of what acme/tiny has
		t.Errorf("%d bytes in all, acme/tiny has %d", total, tiny.Size)
	}
	if _, stdout, _ := command(t, env, "list"); !strings.Contains(stdout, "acme/tiny") || !strings.Contains(stdout, "main") || !strings.Contains(stdout, first[:12]) {
		t.Errorf("list prints %s", stdout)
	}

	// The first revision alone: only its scheduler_config.json is nobody else's.
	old, err := os.Stat(filepath.Join(checkpoint, "scheduler/scheduler_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, env, "rm", "acme/tiny@"+first[:8])
	if code != exitOK || !strings.Contains(stdout, "removed 1 revision, freed "+sizeText(old.Size())) {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	after, repos := sizes()
	if after != total-old.Size() || len(repos["acme/tiny"].Revisions) != 1 {
		t.Errorf("%d bytes before, %d after, freed should be %d; %+v", total, after, old.Size(), repos["acme/tiny"])
	}
	h.Forget()
	pull("acme/tiny")
	if n := len(h.Requests()); n != 1 {
		t.Errorf("the revision that stayed took %d requests", n)
	}

	// The whole repository: what acme/other has stays.
	if code, stdout, stderr = command(t, env, "rm", "acme/tiny"); code != exitOK || !strings.Contains(stdout, "freed "+sizeText(after-int64(len(vae)))) {
		t.Errorf("exit %d, %q, %q; %d bytes should be freed", code, stdout, stderr, after-int64(len(vae)))
	}
	if after, repos = sizes(); after != int64(len(vae)) || len(repos) != 1 {
		t.Errorf("%d bytes are left: %+v", after, repos)
	}
	kept, err := os.ReadFile(filepath.Join(env["HF_HOME"], "hub", "models--acme--other", "snapshots", other.Commit, "vae.safetensors"))
	if err != nil || !bytes.Equal(kept, vae) {
		t.Errorf("what acme/other shares was damaged: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(env["HF_HOME"], "hub", "*", "*tiny*"))
	if more, _ := filepath.Glob(filepath.Join(env["HF_HOME"], "hub", "*tiny*")); len(left)+len(more) > 0 {
		t.Errorf("left behind: %v %v", left, more)
	}
}

func TestShowModel(t *testing.T) {
	h, _, env := fakeHub(t)
	want := []string{"FluxPipeline", "apache-2.0", "transformer", "diffusers.FluxTransformer2DModel", "transformers.T5EncoderModel", "F32"}
	check := func(how string, env map[string]string, more ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, env, "show", "acme/tiny")
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", how, code, stderr)
		}
		for _, w := range append(more, want...) {
			if !strings.Contains(stdout, w) {
				t.Errorf("%s: show prints no %q:\n%s", how, w, stdout)
			}
		}
		return stdout
	}
	remote := check("from the Hub", env, "0 B of it in the cache")
	var sent int64
	for _, r := range h.Requests(hubtest.Content, hubtest.Xorb) {
		sent += r.Sent
	}
	if sent > 600_000 {
		t.Errorf("show downloaded %d bytes", sent)
	}
	if code, _, stderr := command(t, env, "pull", "acme/tiny"); code != exitOK {
		t.Fatal(stderr)
	}
	h.Forget()
	cached := check("cached", env)
	if n := len(h.Requests(hubtest.Content, hubtest.Resolve)); n > 0 {
		t.Errorf("%d files were asked for that are cached", n)
	}
	_, a, _ := strings.Cut(remote, "COMPONENT")
	if _, b, _ := strings.Cut(cached, "COMPONENT"); a != b {
		t.Errorf("before and after the download:\n%s\n%s", a, b)
	}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "apache-2.0" }) // the README isn't part of the pipeline
	check("offline", with(env, "HF_HUB_OFFLINE", "1"))
	if code, stdout, stderr := command(t, env, "show", checkpoint); code != exitOK || !strings.Contains(stdout, "FluxTransformer2DModel") || !strings.HasPrefix(stdout, "folder:") {
		t.Errorf("a folder: exit %d, %s%s", code, stdout, stderr)
	}
}

func TestXetHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(path, []byte("hello world"), 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "f15edd43b7e85cfd25e2758ffe13b99fdd09dfa817e8d9f6548722a7a126db7f"
	if code, stdout, stderr := command(t, nil, "xet", "hash", path, path); code != exitOK || stdout != strings.Repeat(want+"  "+path+"\n", 2) {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ := command(t, nil, "xet", "hash", "-"); code != exitOK || !strings.HasSuffix(stdout, "  -\n") {
		t.Errorf("standard input: exit %d, %q", code, stdout)
	}
}

// An interrupted pull ends with 130 and goes on later.
func TestPullInterrupted(t *testing.T) {
	h, repo, env := fakeHub(t)
	big := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 100_000)
	for i := range big {
		big[i] ^= byte(i >> 9)
	}
	f := repo.AddLFS("vae/diffusion_pytorch_model.safetensors", big)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Change(func() {
		h.Pace = 2 * time.Millisecond
		h.Fault = func(r *hubtest.Request) *hubtest.Fault {
			if r.Kind == hubtest.Content {
				time.AfterFunc(150*time.Millisecond, cancel)
			}
			return nil
		}
	})
	var out, errs bytes.Buffer
	code := run(ctx, &environment{stdout: &out, stderr: &errs, getenv: func(k string) string { return env[k] }, now: time.Now}, []string{"pull", "acme/tiny"})
	if code != exitInterrupted || out.Len() > 0 || !strings.Contains(errs.String(), "run the command again") {
		t.Fatalf("exit %d, %q, %q", code, out.String(), errs.String())
	}
	if _, stdout, _ := command(t, env, "list"); !strings.Contains(stdout, "unfinished") {
		t.Errorf("list doesn't show the unfinished download: %s", stdout)
	}
	if code, _, stderr := command(t, with(env, "HF_HUB_OFFLINE", "1"), "pull", "acme/tiny"); code != exitFailed {
		t.Errorf("a half download was taken for whole: %s", stderr)
	}
	h.Change(func() { h.Fault, h.Pace = nil, 0 })
	h.Forget()
	if code, _, stderr := command(t, env, "pull", "acme/tiny"); code != exitOK {
		t.Fatal(stderr)
	}
	var sent int64
	for _, r := range h.Requests(hubtest.Content) {
		sent += r.Sent
	}
	if sent == 0 || sent >= f.Size {
		t.Errorf("the second run fetched %d of %d bytes", sent, f.Size)
	}
}

// On a terminal there are bars, and nothing of them on standard output.
func TestPullOnATerminal(t *testing.T) {
	_, _, env := fakeHub(t)
	var out, errs bytes.Buffer
	e := &environment{stdout: &out, stderr: &errs, getenv: func(k string) string { return env[k] }, now: time.Now, terminal: true}
	if code := run(t.Context(), e, []string{"pull", "acme/tiny"}); code != exitOK || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
	if !strings.Contains(errs.String(), "total") {
		t.Errorf("no bar: %q", errs.String())
	}
}
