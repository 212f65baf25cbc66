package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// files is a component folder: what to write under each name. "a,b" makes a safetensors file of tensors a and b; what is no
// list of letters is written as it is.
type files map[string]string

func (f files) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range f {
		if filepath.Ext(name) == ".safetensors" && strings.Trim(content, "abcdexyz,") == "" {
			save(t, join(dir, name), strings.Split(content, ",")...)
			continue
		}
		write(t, join(dir, name), content)
	}
	return dir
}

// index returns an index: "a,b→f1 c→f2".
func index(text string) string {
	var entries []string
	for part := range strings.FieldsSeq(text) {
		names, file, _ := strings.Cut(part, "→")
		for name := range strings.SplitSeq(names, ",") {
			entries = append(entries, fmt.Sprintf("%q: %q", name, file))
		}
	}
	return `{"metadata": {"total_size": 1}, "weight_map": {` + strings.Join(entries, ", ") + `}}`
}

const (
	dpm    = "diffusion_pytorch_model"
	shard1 = dpm + "-00001-of-00002.safetensors"
	shard2 = dpm + "-00002-of-00002.safetensors"
	plain  = dpm + ".safetensors"
	idx    = dpm + ".safetensors.index.json"
)

func TestOpen(t *testing.T) {
	fp16 := Options{Variant: "fp16"}
	for _, c := range []struct {
		name     string
		files    files
		o        Options
		names    string // of the tensors
		opened   string // file names
		variant  string
		warnings []string
	}{
		{"diffusers", files{plain: "a,b", "config.json": "{}"}, Options{}, "a b", plain, "", nil},
		{"transformers", files{"model.safetensors": "a"}, Options{}, "a", "model.safetensors", "", nil},
		{"own base name", files{"lora.safetensors": "a", plain: "b"}, Options{BaseName: "lora"}, "a", "lora.safetensors", "", nil},
		{"shards", files{idx: index("a,c→" + shard1 + " b→" + shard2), shard1: "a,c", shard2: "b"}, Options{}, "a b c", shard1 + " " + shard2, "", nil},
		{"one shard", files{idx: index("a→" + shard1), shard1: "a"}, Options{}, "a", shard1, "", nil},
		{"shards of free names", files{"model.safetensors.index.json": index("a→x.safetensors b→..y.safetensors"), "x.safetensors": "a", "..y.safetensors": "b"}, Options{}, "a b", "..y.safetensors x.safetensors", "", nil},
		{"key not listed", files{idx: index("a→" + shard1 + " b→" + shard2), shard1: "a,d,e", shard2: "b"}, Options{}, "a b d e", shard1 + " " + shard2, "", []string{`2 tensors of the shards are not listed, the first is "d"`}},

		{"variant", files{dpm + ".fp16.safetensors": "a", plain: "b"}, fp16, "a", dpm + ".fp16.safetensors", "fp16", nil},
		{"plain beside a variant", files{dpm + ".fp16.safetensors": "a", plain: "b"}, Options{}, "b", plain, "", nil},
		{"variant of transformers", files{"model.fp16.safetensors": "a"}, fp16, "a", "model.fp16.safetensors", "fp16", nil},
		{"variant with a dash", files{"model.no-ema.safetensors": "a"}, Options{Variant: "no-ema"}, "a", "model.no-ema.safetensors", "no-ema", nil},
		{"variant shards", files{
			dpm + ".safetensors.index.fp16.json":            index("a→" + dpm + ".fp16-00001-of-00002.safetensors b→" + dpm + ".fp16-00002-of-00002.safetensors"),
			dpm + ".fp16-00001-of-00002.safetensors":        "a",
			dpm + ".fp16-00002-of-00002.safetensors":        "b",
			idx:                                             index("x→" + shard1),
			shard1:                                          "x",
			dpm + ".safetensors.index.bf16.json":            "broken on purpose, not read",
			"model.safetensors.index.json.incomplete":       "",
			dpm + ".safetensors.index.fp16.json.incomplete": "",
		}, fp16, "a b", dpm + ".fp16-00001-of-00002.safetensors " + dpm + ".fp16-00002-of-00002.safetensors", "fp16", nil},
		{"variant shards, old names", files{
			dpm + ".safetensors.fp16.index.json":     index("a→" + dpm + "-00001-of-00002.fp16.safetensors b→" + dpm + "-00002-of-00002.fp16.safetensors"),
			dpm + "-00001-of-00002.fp16.safetensors": "a",
			dpm + "-00002-of-00002.fp16.safetensors": "b",
		}, fp16, "a b", dpm + "-00001-of-00002.fp16.safetensors " + dpm + "-00002-of-00002.fp16.safetensors", "fp16", nil},
		{"variant shards of transformers", files{
			"model.safetensors.index.fp16.json":     index("a→model.fp16-00001-of-00001.safetensors"),
			"model.fp16-00001-of-00001.safetensors": "a",
		}, fp16, "a", "model.fp16-00001-of-00001.safetensors", "fp16", nil},
		{"no such variant", files{plain: "a", dpm + ".bf16.safetensors": "b"}, fp16, "a", plain, "", []string{"no fp16 variant here, using " + plain}},
		{"no such variant, shards", files{idx: index("a→" + shard1), shard1: "a"}, fp16, "a", shard1, "", []string{"no fp16 variant here, using " + idx}},
		{"variant only pickled", files{"model.safetensors": "a", "pytorch_model.fp16.bin": ""}, fp16, "a", "model.safetensors", "", []string{"no fp16 variant"}},

		{"diffusers takes the index", files{idx: index("a→" + shard1), shard1: "a", plain: "b"}, Options{}, "a", shard1, "", []string{"both " + idx + " and " + plain}},
		{"transformers takes the single file", files{"model.safetensors.index.json": index("a→x.safetensors"), "x.safetensors": "a", "model.safetensors": "b"}, Options{}, "b", "model.safetensors", "", []string{"both model.safetensors and model.safetensors.index.json"}},
		{"both libraries", files{plain: "a", "model.safetensors": "b"}, Options{}, "a", plain, "", []string{"both " + plain + " and model.safetensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.files.write(t)
			ck, err := Open(dir, c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer ck.Close()
			if got := strings.Join(ck.Names(), " "); got != c.names {
				t.Errorf("tensors %q, expected %q", got, c.names)
			}
			var opened []string
			for _, f := range ck.Files() {
				opened = append(opened, filepath.Base(f.Path()))
			}
			if got := strings.Join(opened, " "); got != c.opened {
				t.Errorf("opened %q, expected %q", got, c.opened)
			}
			if ck.Variant != c.variant || ck.Dir != dir {
				t.Errorf("variant %q in %s, expected %q", ck.Variant, ck.Dir, c.variant)
			}
			if len(ck.Warnings) != len(c.warnings) {
				t.Fatalf("warnings %q, expected %q", ck.Warnings, c.warnings)
			}
			for i, w := range c.warnings {
				wantError(t, errors.New(ck.Warnings[i]), dir, w)
			}
			for x := range ck.All() {
				if b := x.Bytes(); b[0] != byte(len(x.Name)) || len(b) != 24 {
					t.Errorf("%s has other data", x)
				}
			}
			if n := int64(24 * ck.Len()); ck.BytesRead() != n || ck.NumBytes() != n {
				t.Errorf("%d bytes read of %d, expected %d", ck.BytesRead(), ck.NumBytes(), n)
			}
			ck.Release()
		})
	}
}

func TestOpenErrors(t *testing.T) {
	two := index("a→" + shard1 + " b→" + shard2)
	truncated := string(build(`{`+entry("b", "U8", "64", "0,64")+`}`, 30))
	for _, c := range []struct {
		name   string
		files  files
		o      Options
		want   []string
		absent bool // is fs.ErrNotExist
	}{
		{"empty folder", files{}, Options{}, []string{"no diffusion_pytorch_model.safetensors or model.safetensors", "no weights"}, true},
		{"only a config", files{"config.json": "{}"}, Options{}, []string{"no weights"}, true},
		{"only pickles", files{dpm + ".bin": ""}, Options{}, []string{dpm + ".bin", "pickled PyTorch files are not read", "convert"}, true},
		{"pickled shards of transformers", files{"pytorch_model-00001-of-00002.bin": "", "pytorch_model.bin.index.json": "{}"}, Options{}, []string{"pytorch_model-00001-of-00002.bin", "pickled"}, true},
		{"other file", files{"flux1-dev.safetensors": "a"}, Options{}, []string{"the folder has flux1-dev.safetensors"}, true},
		{"whole pipeline", files{"model_index.json": "{}", "flux1-dev.safetensors": "a"}, Options{}, []string{"whole pipeline", "one of its folders"}, true},
		{"only a variant", files{"model.fp16.safetensors": "a"}, Options{}, []string{"only the variant fp16", "ask for it"}, true},
		{"only another variant", files{"model.fp16.safetensors": "a"}, Options{Variant: "bf16"}, []string{"no bf16 variant", "only the variant fp16"}, true},
		{"variant nowhere", files{}, Options{Variant: "fp16"}, []string{"no fp16 variant and no " + plain}, true},
		{"own base name missing", files{plain: "a"}, Options{BaseName: "lora"}, []string{"no lora.safetensors", plain}, true},
		{"shards without index", files{shard1: "a", shard2: "b"}, Options{}, []string{"index " + idx, shard1, "missing"}, true},
		{"variant shards without index", files{dpm + ".fp16-00001-of-00002.safetensors": "a", plain: "a"}, Options{Variant: "fp16"}, []string{"index " + dpm + ".safetensors.index.fp16.json", "missing"}, true},
		{"old variant shards without index", files{"model-00001-of-00002.fp16.safetensors": "a"}, Options{Variant: "fp16"}, []string{"index model.safetensors.index.fp16.json", "missing"}, true},
		{"variant with a path", files{plain: "a"}, Options{Variant: "../x"}, []string{`"../x" is no part of a file name`}, false},
		{"base name with a path", files{plain: "a"}, Options{BaseName: "/etc/passwd"}, []string{`"/etc/passwd" is no part`}, false},

		{"missing shard", files{idx: two, shard1: "a"}, Options{}, []string{idx + ": 1 of 2 shards missing", shard2, "pull the model again"}, true},
		{"all shards missing", files{idx: index("a→1.safetensors b→2.safetensors c→3.safetensors d→4.safetensors e→5.safetensors f→6.safetensors")}, Options{}, []string{"6 of 6 shards missing", "4.safetensors", "and 2 more"}, true},
		{"truncated shard", files{idx: two, shard1: "a", shard2: truncated}, Options{}, []string{shard2 + ": ", `tensor "b"`, "truncated"}, false},
		{"listed key absent", files{idx: index("a,x→" + shard1 + " b→" + shard2), shard1: "a", shard2: "b"}, Options{}, []string{idx + ": ", `tensor "x" is listed`, shard1, "does not have it"}, false},
		{"key in the other shard", files{idx: index("a→" + shard1 + " b→" + shard1 + " c→" + shard2), shard1: "a", shard2: "b,c"}, Options{}, []string{`tensor "b" is listed in shard`, shard1, "but is in", shard2}, false},
		{"key in two shards", files{idx: two, shard1: "a,b", shard2: "b"}, Options{}, []string{`tensor "b" is in two shards`, shard1, shard2}, false},
		{"unlisted key in two shards", files{idx: two, shard1: "a,z", shard2: "b,z"}, Options{}, []string{`tensor "z" is in two shards`}, false},

		{"index leads up", files{idx: index("a→../x.safetensors")}, Options{}, []string{`tensor "a"`, `"../x.safetensors"`, "of the same folder"}, false},
		{"index leads down", files{idx: index("a→sub/x.safetensors")}, Options{}, []string{"of the same folder"}, false},
		{"index leads to the root", files{idx: index("a→/etc/passwd")}, Options{}, []string{"of the same folder"}, false},
		{"index with a windows path", files{idx: index(`a→..\x.safetensors`)}, Options{}, []string{"of the same folder"}, false},
		{"index with a drive", files{idx: index("a→C:x.safetensors")}, Options{}, []string{"of the same folder"}, false},
		{"index names the folder", files{idx: index("a→.")}, Options{}, []string{"of the same folder"}, false},
		{"index names nothing", files{idx: index("a→")}, Options{}, []string{"of the same folder"}, false},
		{"index is no JSON", files{idx: "hello"}, Options{}, []string{idx + ": ", "the index is not valid", "'h'"}, false},
		{"index is empty", files{idx: ""}, Options{}, []string{"the index is not valid", "the end"}, false},
		{"index with trailing text", files{idx: two + "x"}, Options{}, []string{"trailing text"}, false},
		{"index not UTF-8", files{idx: "{\"\xff\":1}"}, Options{}, []string{"not UTF-8"}, false},
		{"index without a map", files{idx: "{}"}, Options{}, []string{"no weight_map"}, false},
		{"index of nothing", files{idx: `{"weight_map":{}}`}, Options{}, []string{"lists no tensors"}, false},
		{"index with a map of numbers", files{idx: `{"weight_map":{"a":1}}`}, Options{}, []string{`the value of "a" must be a file name`}, false},
		{"index with a list", files{idx: `{"weight_map":["a"]}`}, Options{}, []string{"object of strings"}, false},
		{"index with a duplicate", files{idx: `{"weight_map":{"a":"x","a":"y"}}`}, Options{}, []string{`tensor "a" occurs twice`}, false},
		{"index with two maps", files{idx: `{"weight_map":{"a":"x"},"weight_map":{"b":"x"}}`}, Options{}, []string{"weight_map occurs twice"}, false},
		{"index is an LFS pointer", files{idx: "version https://git-lfs.github.com/spec/v1\n"}, Options{}, []string{idx, "Git LFS pointer"}, false},
		{"index is a web page", files{idx: "<!doctype html>"}, Options{}, []string{idx, "web page"}, false},
		{"damaged single file", files{plain: "PK\x03\x04 not read"}, Options{}, []string{plain, "looks like a PyTorch archive"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.files.write(t)
			_, err := Open(dir, c.o)
			wantError(t, err, append(c.want, dir)...)
			if errors.Is(err, fs.ErrNotExist) != c.absent {
				t.Errorf("%v: is fs.ErrNotExist: %v, expected %v", err, !c.absent, c.absent)
			}
		})
	}
	dir := t.TempDir()
	_, err := Open(join(dir, "none"), Options{})
	wantError(t, err, join(dir, "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	write(t, join(dir, "file"), "")
	_, err = Open(join(dir, "file"), Options{})
	wantError(t, err, join(dir, "file"), "is a file, expected a component folder")
	if err := os.Mkdir(join(dir, plain), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	wantError(t, err, join(dir, plain), "is a folder")
}

// A folder of a hub cache: every file is a link into another folder, and one blob is missing.
func TestOpenLinkedFiles(t *testing.T) {
	blobs := files{"b1.safetensors": "a", "b2.safetensors": "b"}.write(t)
	dir := files{idx: index("a→" + shard1 + " b→" + shard2)}.write(t)
	for shard, blob := range map[string]string{shard1: "b1.safetensors", shard2: "b2.safetensors"} {
		if err := os.Symlink(join(blobs, blob), join(dir, shard)); err != nil {
			t.Skip(err)
		}
	}
	c, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(join(blobs, "b2.safetensors")); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	wantError(t, err, idx, "1 of 2 shards missing", shard2)
}

// A model with FLUX's key names and proportions, in three shards: its tensors come back as they were saved, and a rank of
// two reads half of the projections that it shards, packed ones included.
func TestFluxLikeCheckpoint(t *testing.T) {
	const d, ranks = 16, 2
	arrays := map[string]*tensor.Array{
		"x_embedder.weight": counting(tensor.BF16, 1, d, 8),
		"x_embedder.bias":   counting(tensor.F32, 2, d),
		"proj_out.weight":   counting(tensor.BF16, 3, 8, d),
	}
	for i := range 3 {
		arrays[fmt.Sprintf("transformer_blocks.%d.attn.to_q.weight", i)] = counting(tensor.BF16, i, d, d)
		arrays[fmt.Sprintf("transformer_blocks.%d.attn.to_out.0.weight", i)] = counting(tensor.BF16, 5+i, d, d)
		arrays[fmt.Sprintf("single_transformer_blocks.%d.proj_out.weight", i)] = counting(tensor.BF16, 9+i, d, 5*d)
	}
	dir := t.TempDir()
	parts := make([]map[string]*tensor.Array, 3)
	var list []string
	for i, name := range slices.Sorted(maps.Keys(arrays)) {
		if parts[i%3] == nil {
			parts[i%3] = map[string]*tensor.Array{}
		}
		parts[i%3][name] = arrays[name]
		list = append(list, fmt.Sprintf("%s→%s-%05d-of-00003.safetensors", name, dpm, i%3+1))
	}
	for i, p := range parts {
		if err := Save(join(dir, fmt.Sprintf("%s-%05d-of-00003.safetensors", dpm, i+1)), p, nil); err != nil {
			t.Fatal(err)
		}
	}
	write(t, join(dir, idx), index(strings.Join(list, " ")))
	c, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Len() != len(arrays) || len(c.Warnings) != 0 {
		t.Errorf("%d tensors of %d, warnings %q", c.Len(), len(arrays), c.Warnings)
	}
	for name, want := range arrays {
		x, err := c.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := x.Array(); a.DType != want.DType || !a.Shape.Equal(want.Shape) || !bytes.Equal(a.Data, want.Data) {
			t.Errorf("%s is not what was saved", x)
		}
	}
	before := c.BytesRead()
	total := 0
	for x := range c.All() {
		var v *View
		switch { // rank 1 of 2
		case strings.Contains(x.Name, "to_q."):
			v, err = x.Slice(0, d/ranks, d)
		case strings.Contains(x.Name, "to_out."):
			v, err = x.Slice(1, d/ranks, d)
		case strings.HasPrefix(x.Name, "single_"): // columns packed as [D, 4D]
			v, err = x.Gather(1, [][2]int{{d / ranks, d}, {d + 2*d, d + 4*d}})
		default:
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		total += x.NumBytes()
		got, err := v.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(x.Name, "single_") && !bytes.Equal(got, naive(x, 1, [][2]int{{8, 16}, {48, 80}})) {
			t.Errorf("%s: wrong columns", x)
		}
	}
	if n := c.BytesRead() - before; total == 0 || n != int64(total/ranks) {
		t.Errorf("rank 1 of 2 read %d bytes of %d", n, total)
	}
}

// All golden checkpoints open, the variant one only when it is asked for, and agree with their index.
func TestGoldenCheckpoints(t *testing.T) {
	root := shareddata.Dir(t, "golden", "checkpoints")
	configs, err := filepath.Glob(join(root, "*/*/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(join(root, "*/config.json"))
	if configs = append(configs, more...); len(configs) < 20 {
		t.Fatalf("only %d components", len(configs))
	}
	for _, config := range configs {
		dir := filepath.Dir(config)
		o := Options{}
		if filepath.Base(filepath.Dir(dir)) == "sd3" {
			_, err := Open(dir, o)
			wantError(t, err, dir, "only the variant fp16")
			o.Variant = "fp16"
		}
		c, err := Open(dir, o)
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Len() == 0 || len(c.Warnings) != 0 || c.Variant != o.Variant {
			t.Errorf("%s: %d tensors, variant %q, warnings %q", dir, c.Len(), c.Variant, c.Warnings)
		}
		var bytes int64
		tensors := 0
		for _, n := range c.DTypes() {
			tensors += n.Tensors
			bytes += n.Bytes
		}
		if tensors != c.Len() || bytes != c.NumBytes() {
			t.Errorf("%s: the histogram has %d tensors of %d bytes, expected %d of %d", dir, tensors, bytes, c.Len(), c.NumBytes())
		}
		for x := range c.All() {
			if a := x.Array(); a.FirstNonFinite() >= 0 || a.Check() != nil {
				t.Errorf("%s: %s: %v", dir, x, a.Check())
			}
		}
		if c.BytesRead() != c.NumBytes() {
			t.Errorf("%s: %d bytes read of %d", dir, c.BytesRead(), c.NumBytes())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
