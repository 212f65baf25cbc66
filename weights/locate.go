package weights

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/internal/outfile"
)

// location is the file to open: one safetensors file or an index.
type location struct {
	file     string
	index    bool
	variant  string
	warnings []string
}

// defaultBaseNames are Diffusers' and Transformers' names.
var defaultBaseNames = []string{"diffusion_pytorch_model", "model"}

// candidates lists the files that may hold the weights called base, best first; variant may be empty. The first file of
// a folder that has several is the one that the library of that name would read: Diffusers looks for an index first,
// Transformers for a single file. The second index name of a variant is that of Diffusers before 0.32 and
// Transformers before 4.46.
func candidates(base, variant string) []location {
	single := location{file: base + ".safetensors"}
	indexes := []location{{file: base + ".safetensors.index.json", index: true}}
	if variant != "" {
		single = location{file: base + "." + variant + ".safetensors", variant: variant}
		indexes = []location{
			{file: base + ".safetensors.index." + variant + ".json", index: true, variant: variant},
			{file: base + ".safetensors." + variant + ".index.json", index: true, variant: variant},
		}
	}
	if base == "model" {
		return append([]location{single}, indexes...)
	}
	return append(indexes, single)
}

// locate finds the weights in a component folder.
func locate(dir string, o Options) (location, error) {
	for _, part := range []string{o.Variant, o.BaseName} {
		if part != "" && !plainName(part) {
			return location{}, fmt.Errorf("%s: %s is no part of a file name", dir, clip(part))
		}
	}
	bases := defaultBaseNames
	if o.BaseName != "" {
		bases = []string{o.BaseName}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return location{}, fmt.Errorf("%s: is a file, expected a component folder", dir)
		}
		return location{}, fmt.Errorf("%s: %w", dir, outfile.Cause(err))
	}
	present := folder{dir: dir, bases: bases}
	for _, e := range entries {
		present.names = append(present.names, e.Name())
	}
	if o.Variant != "" {
		if l, ok := present.pick(o.Variant); ok {
			return l, nil
		}
		if err := present.noIndex(o.Variant); err != nil {
			return location{}, err
		}
	}
	l, ok := present.pick("")
	if !ok {
		return location{}, present.explain(o.Variant)
	}
	if o.Variant != "" {
		l.warnings = append(l.warnings, fmt.Sprintf("%s: no %s variant here, using %s", dir, o.Variant, l.file))
	}
	return l, nil
}

// folder is the listing of a component folder.
type folder struct {
	dir   string
	bases []string
	names []string // sorted
}

func (f folder) has(name string) bool {
	_, ok := slices.BinarySearch(f.names, name)
	return ok
}

// pick returns the best candidate that is there, with a warning that names the others.
func (f folder) pick(variant string) (location, bool) {
	var found []location
	for _, base := range f.bases {
		for _, l := range candidates(base, variant) {
			if f.has(l.file) {
				found = append(found, l)
			}
		}
	}
	if len(found) == 0 {
		return location{}, false
	}
	best := found[0]
	for _, other := range found[1:] {
		best.warnings = append(best.warnings, fmt.Sprintf("%s: both %s and %s are there, using the first", f.dir, best.file, other.file))
	}
	return best, true
}

// weightName matches BASE(.VARIANT)(-00001-of-00002)(.VARIANT).safetensors: both generations of variant names.
func weightName(base string) *regexp.Regexp {
	return regexp.MustCompile(`^` + regexp.QuoteMeta(base) + `(?:\.([^.]+?))?(-\d{5}-of-\d{5})?(?:\.([^.]+))?\.safetensors$`)
}

// weightFile is a file name taken apart.
type weightFile struct {
	name, base, variant string
	shard               bool
}

// weightFiles lists the safetensors files that are named like weights of the component.
func (f folder) weightFiles() []weightFile {
	var files []weightFile
	for _, base := range f.bases {
		re := weightName(base)
		for _, name := range f.names {
			if m := re.FindStringSubmatch(name); m != nil {
				files = append(files, weightFile{name, base, m[1] + m[3], m[2] != ""})
			}
		}
	}
	return files
}

// noIndex returns an error where there are shards of the variant; without an index they cannot be read.
func (f folder) noIndex(variant string) error {
	for _, w := range f.weightFiles() {
		if !w.shard || w.variant != variant {
			continue
		}
		for _, l := range candidates(w.base, variant) {
			if l.index {
				return fmt.Errorf("%s: the index %s of shard %s is %w: pull the model again", f.dir, l.file, w.name, absent("missing"))
			}
		}
	}
	return nil
}

// explain says why there is nothing to open. variant is what was asked for.
func (f folder) explain(variant string) error {
	if err := f.noIndex(""); err != nil {
		return err
	}
	want := make([]string, len(f.bases))
	for i, base := range f.bases {
		want[i] = base + ".safetensors"
	}
	missing := strings.Join(want, " or ")
	if variant != "" {
		missing = fmt.Sprintf("%s variant and no %s", variant, missing)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: no %s: %w", f.dir, missing, absent(fmt.Sprintf(format, args...)))
	}
	var variants, pickles, others []string
	for _, w := range f.weightFiles() {
		if w.variant != "" {
			variants = append(variants, w.variant)
		}
	}
	for _, name := range f.names {
		switch filepath.Ext(name) {
		case ".bin", ".pt", ".pth", ".ckpt":
			pickles = append(pickles, name)
		case ".safetensors", ".gguf":
			others = append(others, name)
		}
	}
	slices.Sort(variants)
	if variants = slices.Compact(variants); len(variants) > 0 {
		return fail("the folder has only the variant %s, ask for it", few(variants))
	}
	if len(pickles) > 0 {
		return fail("the folder has %s, but pickled PyTorch files are not read because they can run code: "+
			"convert it to safetensors, or pull a revision that has safetensors", few(pickles))
	}
	if f.has("model_index.json") {
		return fail("this is a whole pipeline, open one of its folders")
	}
	if len(others) > 0 {
		return fail("the folder has %s", few(others))
	}
	return fail("the folder has no weights")
}
