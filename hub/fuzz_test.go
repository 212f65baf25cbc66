package hub

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/hub/xet"
)

// What comes from outside is parsed without panics, and what is accepted can do no harm.

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{
		"org/name", "org/name@refs/pr/1", "hf://datasets/org/name@v1/a/b.txt", "hf://buckets/org/b/prefix/",
		"https://huggingface.co/org/name/blob/refs%2Fpr%2F1/x.json", "https://hf.co/org/name/tree/main/a?b#c", "hf://org/name@/x",
		"../x", "org/name@..", "https://huggingface.co@evil.example/org/name", "hf://org/name/a//b", `org\name`,
		"https://huggingface.co/o/n/blob/a%2Fb/c", "hf://o/n@a%252Fb/c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseRef(s, DefaultEndpoint)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		for _, p := range []string{ref.Repo, ref.Revision, ref.Path} {
			if p != "" && safePath(p) != nil {
				t.Errorf("%q leads to the unsafe %q", s, p)
			}
		}
		again, err := ParseRef(ref.String(), DefaultEndpoint)
		if err != nil || again != ref {
			t.Errorf("%q is %+v, printed %q, which is %+v, %v", s, ref, ref, again, err)
		}
	})
}

func FuzzTreePage(f *testing.F) {
	f.Add([]byte(`[{"type":"directory","oid":"x","size":0,"path":"a"},{"type":"file","oid":"0123456789abcdef0123456789abcdef01234567","size":3,"path":"a/b.json"}]`))
	f.Add([]byte(`[{"type":"file","oid":"ff","size":134,"path":"m.safetensors","lfs":{"oid":"` + strings.Repeat("ab", 32) + `","size":9,"pointerSize":134},"xetHash":"` + strings.Repeat("cd", 32) + `"}]`))
	f.Add([]byte(`[{"type":"file","oid":"aa","size":1,"path":"../../etc/passwd"}]`))
	f.Add([]byte(`[{"type":"file","oid":"../x","size":-5,"path":"C:/x"}]`))
	f.Add([]byte(`[{"type":"file","oid":"aa","size":9223372036854775807,"path":"x"}]`))
	f.Add([]byte(`[{"type":"file","oid":"aa","size":1,"path":"\u001b[2Jx"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTreePage(data)
		if err != nil {
			return
		}
		for _, e := range entries {
			if strings.ContainsAny(e.etag(), `/\`) || e.etag() == "" || e.Size < -1 || e.Size > maxFile {
				t.Errorf("accepted %+v", e)
			}
		}
		chosen, err := chooseListed(Ref{Kind: Model, Repo: "acme/tiny"}, entries, Options{Include: []string{"*"}}, nil)
		if err != nil {
			return
		}
		for _, e := range chosen {
			if safePath(e.Path) != nil {
				t.Errorf("chose %+v", e)
			}
		}
	})
}

func FuzzTreeCache(f *testing.F) {
	f.Add([]byte(`{"format_version":1,"files":{"a.txt":{"size":3,"blob_id":"0123456789abcdef0123456789abcdef01234567"}}}`))
	f.Add([]byte(`{"format_version":1,"files":{"m":{"size":3,"blob_id":"ff","lfs_sha256":"` + strings.Repeat("ab", 32) + `","lfs_size":4,"xet_hash":"` + strings.Repeat("cd", 32) + `"}}}`))
	f.Add([]byte(`{"format_version":2,"files":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTreeCache(data)
		if err != nil {
			return
		}
		again, err := formatTreeCache(entries)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseTreeCache(again)
		if err != nil || !slices.Equal(got, entries) {
			t.Errorf("%+v, written and read: %+v, %v", entries, got, err)
		}
	})
}

func FuzzIndexFiles(f *testing.F) {
	f.Add([]byte(modelIndexJSON))
	f.Add([]byte(`{"metadata":{"total_size":3},"weight_map":{"a":"m-00001-of-00002.safetensors","b":"../x","c":"m-00001-of-00002.safetensors"}}`))
	f.Add([]byte(`{"_class_name":["pipeline","Own"],"../x":["a","b"],"_ignore_files":["vae/config.json"]}`))
	names := []string{"model_index.json", "vae/config.json", "vae/diffusion_pytorch_model.safetensors", "vae/diffusion_pytorch_model.fp16.safetensors",
		"transformer/diffusion_pytorch_model-00001-of-00002.safetensors", "scheduler/scheduler_config.json", "a/b/c.bin"}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, shard := range shardsOf(data) {
			if safePath(shard) != nil {
				t.Errorf("unsafe shard %q", shard)
			}
		}
		m, err := parseModelIndex(data)
		if err != nil {
			return
		}
		for c := range m.Components {
			if strings.Contains(c, "/") || safePath(c) != nil {
				t.Errorf("unsafe component %q", c)
			}
		}
		for _, variant := range []string{"", "fp16"} {
			chosen, err := selectPipeline(names, m, variant)
			if err != nil {
				continue
			}
			for _, n := range chosen {
				if !slices.Contains(names, n) {
					t.Errorf("chose %q, which isn't there", n)
				}
			}
		}
		componentNeeds(m, nil)
	})
}

func FuzzTensorTypes(f *testing.F) {
	header := func(s string) []byte { return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...) }
	f.Add(header(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`))
	f.Add(header(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,16],"data_offsets":[0,12]}}`))
	f.Add([]byte("PK\x03\x04 a zip file"))
	f.Add(header("{} ")[:9])
	f.Fuzz(func(t *testing.T, data []byte) {
		counts, need, err := tensorTypes(data)
		if err == nil && counts == nil && need <= int64(len(data)) {
			t.Errorf("asks for %d bytes and has %d", need, len(data))
		}
		for dtype, n := range counts {
			if n < 0 {
				t.Errorf("%d elements of %q", n, dtype)
			}
		}
	})
}

func FuzzJournal(f *testing.F) {
	etag := strings.Repeat("ab", 32)
	whole := formatHeader(etag, 1000, self())
	whole = record{off: 0, size: 600}.append(whole)
	whole = record{off: 600, size: 400, hash: xet.Hash{1}}.append(whole)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(record{off: 1 << 62, size: 1 << 62}.append(bytes.Clone(whole)))
	f.Add([]byte("gesso-partial 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var have spans
		readJournal(bytes.NewReader(data), etag, 1000, func(r record) {
			if r.off < 0 || r.size <= 0 || r.off+r.size > 1000 {
				t.Errorf("record %+v of a file of 1000 bytes", r)
			}
			have.add(r.off, r.off+r.size)
		})
		left := int64(0)
		for _, r := range have.missing(1000) {
			left += r.Len()
		}
		for _, r := range have {
			left += r.Len()
		}
		if left != 1000 {
			t.Errorf("%v and what is missing add up to %d", have, left)
		}
	})
}

// Python's fnmatch decides for huggingface_hub; a pattern must never crash.
func FuzzMatch(f *testing.F) {
	f.Add("*.json", "a/b.json")
	f.Add("[!a-c]?[]x]", "dz]")
	f.Add("[z-a]", "b")
	f.Add("[", "[")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		compile([]string{pattern}).match(name)
		if !strings.ContainsAny(name, "*?[") && strings.ToValidUTF8(name, "") == name && !compile([]string{name}).match(name) {
			t.Errorf("%q doesn't match itself", name)
		}
	})
}

func TestMatchIsPythons(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.json", "vae/config.json", true}, {"*.json", "config.jsonl", false}, {"vae/*", "vae/a/b", true}, {"?.txt", "a.txt", true},
		{"[ab].txt", "b.txt", true}, {"[!ab].txt", "b.txt", false}, {"[^ab].txt", "^.txt", true}, {"[", "[", true}, {"a+b", "a+b", true},
		{"[]x]", "]", true}, {"[a-c]", "b", true}, {`[\w]`, "w", true}, {`[\w]`, "a", false}, {"A*", "abc", false}, {"*", "a\nb", true},
	} {
		if got := compile([]string{c.pattern}).match(c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestParseRef(t *testing.T) {
	for _, c := range []struct {
		s    string
		want Ref
	}{
		{"black-forest-labs/FLUX.1-schnell", Ref{Kind: Model, Repo: "black-forest-labs/FLUX.1-schnell"}},
		{"org/name@v1.0", Ref{Model, "org/name", "v1.0", ""}},
		{"org/name@refs/pr/1", Ref{Model, "org/name", "refs/pr/1", ""}},
		{"hf://org/name", Ref{Model, "org/name", "", ""}},
		{"hf://models/org/name@main/vae/config.json", Ref{Model, "org/name", "main", "vae/config.json"}},
		{"hf://org/name@refs/pr/1/vae/", Ref{Model, "org/name", "refs/pr/1", "vae"}},
		{"hf://org/name@refs/convert/parquet", Ref{Model, "org/name", "refs/convert/parquet", ""}},
		{"hf://org/name@feature%2Fone/vae", Ref{Model, "org/name", "feature/one", "vae"}},
		{"org/name@feature/one", Ref{Model, "org/name", "feature/one", ""}},
		{"https://huggingface.co/org/name/blob/feature%2Fone/a.txt", Ref{Model, "org/name", "feature/one", "a.txt"}},
		{"hf://datasets/org/name/a.csv", Ref{Dataset, "org/name", "", "a.csv"}},
		{"hf://buckets/org/things/some/prefix", Ref{Bucket, "org/things", "", "some/prefix"}},
		{"https://huggingface.co/org/name", Ref{Model, "org/name", "", ""}},
		{"https://huggingface.co/org/name/tree/main", Ref{Model, "org/name", "main", ""}},
		{"https://huggingface.co/org/name/blob/main/a%20b.txt", Ref{Model, "org/name", "main", "a b.txt"}},
		{"https://huggingface.co/org/name/resolve/main/a.txt?download=true", Ref{Model, "org/name", "main", "a.txt"}},
		{"https://huggingface.co/org/name/tree/refs%2Fpr%2F1/vae", Ref{Model, "org/name", "refs/pr/1", "vae"}},
		{"https://huggingface.co/org/name/discussions/3", Ref{Model, "org/name", "", ""}},
		{"https://huggingface.co/datasets/org/name/viewer", Ref{Dataset, "org/name", "", ""}},
		{"https://huggingface.co/buckets/org/things/tree/a", Ref{Bucket, "org/things", "", "a"}},
		{"https://mirror.example/org/name", Ref{Model, "org/name", "", ""}},
	} {
		if got, err := ParseRef(c.s, "https://mirror.example"); err != nil || got != c.want {
			t.Errorf("ParseRef(%q) = %+v, %v; want %+v", c.s, got, err, c.want)
		}
	}
	for _, s := range []string{
		"", "name", "org/", "/name", "org/name@", "hf://", "hf://org", "hf://org/name@", "hf://buckets/org/b@main", "a/b/c", "ftp://x/y",
		"https://example.com/org/name", "org/na me", "org/name@../x", "hf://org/name/../../x", "hf://org/name/a//b", "https://huggingface.co/",
		"https://huggingface.co/org/name/blob", "-org/name", "org/" + strings.Repeat("n", 97), "hf://org/name/c:/x",
	} {
		if got, err := ParseRef(s, DefaultEndpoint); err == nil {
			t.Errorf("ParseRef(%q) = %+v", s, got)
		}
	}
}

func TestConfigFromEnv(t *testing.T) {
	home := t.TempDir()
	get := func(kv ...string) Config {
		t.Helper()
		env := map[string]string{"HOME": home}
		for i := 0; i < len(kv); i += 2 {
			env[kv[i]] = kv[i+1]
		}
		cfg, err := ConfigFromEnv(func(k string) string { return env[k] })
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, home + "/.cache/huggingface/hub"},
		{[]string{"XDG_CACHE_HOME", "/x"}, "/x/huggingface/hub"},
		{[]string{"HF_HOME", "/h", "XDG_CACHE_HOME", "/x"}, "/h/hub"},
		{[]string{"HF_HOME", "/h", "HUGGINGFACE_HUB_CACHE", "/old"}, "/old"},
		{[]string{"HF_HUB_CACHE", "/new", "HUGGINGFACE_HUB_CACHE", "/old"}, "/new"},
		{[]string{"HF_HOME", "~/h"}, home + "/h/hub"},
		{[]string{"HF_HOME", "$BASE/h", "BASE", "/base"}, "/base/h/hub"},
	} {
		if got := get(c.env...).CacheDir; got != c.want {
			t.Errorf("%v: cache %s, want %s", c.env, got, c.want)
		}
	}
	for value, want := range map[string]bool{"1": true, "yes": true, "On": true, "TRUE": true, "0": false, "": false, "2": false, "no": false} {
		if get("HF_HUB_OFFLINE", value).Offline != want || get("HF_HUB_DISABLE_XET", value).DisableXet != want {
			t.Errorf("%q doesn't mean %v", value, want)
		}
	}
	tokens := t.TempDir() + "/token"
	if err := writeFile(tokens, []byte(" hf_file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, ""}, {[]string{"HF_TOKEN", " hf_a\n"}, "hf_a"}, {[]string{"HF_TOKEN_PATH", tokens}, "hf_file"},
		{[]string{"HF_TOKEN", "hf_a", "HF_TOKEN_PATH", tokens}, "hf_a"}, {[]string{"HF_TOKEN", " ", "HF_TOKEN_PATH", tokens}, "hf_file"},
		{[]string{"HF_TOKEN", "hf_a", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}, ""}, {[]string{"HUGGING_FACE_HUB_TOKEN", "hf_old"}, "hf_old"},
	} {
		if got := get(c.env...).Token; got != c.want {
			t.Errorf("%v: token %q, want %q", c.env, got, c.want)
		}
	}
	if got := get("HF_ENDPOINT", "https://mirror.example/", "HF_HUB_DOWNLOAD_TIMEOUT", "2.5"); got.Endpoint != "https://mirror.example" || got.Timeout.Seconds() != 2.5 {
		t.Errorf("%+v", got)
	}
	if _, err := ConfigFromEnv(func(string) string { return "" }); err == nil {
		t.Error("a cache folder without a home")
	}
}

func TestSelectPipeline(t *testing.T) {
	m, err := parseModelIndex([]byte(modelIndexJSON))
	if err != nil {
		t.Fatal(err)
	}
	base := []string{"model_index.json", "scheduler/scheduler_config.json", "text_encoder/config.json", "transformer/config.json", "vae/config.json",
		"tokenizer/vocab.json"}
	pick := func(variant string, weights ...string) []string {
		t.Helper()
		got, err := selectPipeline(append(slices.Clone(base), weights...), m, variant)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(got, func(n string) bool { return slices.Contains(base, n) })
	}
	for _, c := range []struct {
		name, variant string
		weights, want []string
	}{
		{"safetensors over bin", "", []string{"vae/diffusion_pytorch_model.bin", "vae/diffusion_pytorch_model.safetensors", "vae/diffusion_pytorch_model.fp16.safetensors"},
			[]string{"vae/diffusion_pytorch_model.safetensors"}},
		{"bin where a component has no other", "", []string{"vae/diffusion_pytorch_model.bin", "text_encoder/model.safetensors", "text_encoder/pytorch_model.bin"},
			[]string{"vae/diffusion_pytorch_model.bin", "text_encoder/pytorch_model.bin"}},
		{"variant, plain where there is none", "fp16", []string{"vae/diffusion_pytorch_model.safetensors", "vae/diffusion_pytorch_model.fp16.safetensors", "text_encoder/model.safetensors"},
			[]string{"vae/diffusion_pytorch_model.fp16.safetensors", "text_encoder/model.safetensors"}},
		{"sharded variant with its index", "fp16", []string{"transformer/diffusion_pytorch_model.fp16-00001-of-00002.safetensors", "transformer/diffusion_pytorch_model.fp16-00002-of-00002.safetensors",
			"transformer/diffusion_pytorch_model.safetensors.index.fp16.json", "transformer/diffusion_pytorch_model.safetensors"},
			[]string{"transformer/diffusion_pytorch_model.fp16-00001-of-00002.safetensors", "transformer/diffusion_pytorch_model.fp16-00002-of-00002.safetensors",
				"transformer/diffusion_pytorch_model.safetensors.index.fp16.json"}},
		{"no single-file checkpoints, no strangers", "", []string{"flux1-schnell.safetensors", "ae.safetensors", "images/a.png", "LICENSE.md", "other/model.safetensors", "vae/diffusion_pytorch_model.safetensors"},
			[]string{"vae/diffusion_pytorch_model.safetensors"}},
	} {
		if got := pick(c.variant, c.weights...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if _, err := selectPipeline(append(base, "vae/diffusion_pytorch_model.safetensors"), m, "fp8"); err == nil || !strings.Contains(err.Error(), "fp8") {
		t.Errorf("a variant that isn't there: %v", err)
	}
}
