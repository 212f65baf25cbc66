package weights

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Options choose among the weights that one component folder may hold. The zero Options take the plain ones.
type Options struct {
	// Variant is a precision or flavour such as "fp16" that is part of the file names. A folder that has only plain files
	// gives those, and a warning, as Diffusers does; see Checkpoint.Variant.
	Variant string
	// BaseName is the file name up to ".safetensors" or the variant. The default is diffusion_pytorch_model, or else
	// model, the names of Diffusers and Transformers.
	BaseName string
}

// Checkpoint is the weights of one component (transformer, text_encoder, vae …): the tensors of all its files as one
// [Set]. It is safe for concurrent use, except for Close.
type Checkpoint struct {
	Set
	Dir     string
	Variant string // as found: empty where the plain files were taken
	// Warnings are remarks for the user, one line each: a variant that this folder doesn't have, files left out, keys that
	// the index doesn't list.
	Warnings []string
	files    []*File
}

// Open finds the weights in a component folder, opens all files and validates their headers, but reads no tensor. It
// understands a single safetensors file and shards with an index, with and without a variant, under both generations of
// variant names. The error is one line with a path: nothing to read there, a missing or damaged file, an index and shards
// that don't agree. A variant that a whole pipeline lacks is the caller's to report, from Variant.
func Open(dir string, o Options) (*Checkpoint, error) {
	found, err := locate(dir, o)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Dir: dir, Variant: found.variant, Warnings: found.warnings}
	if err := c.open(found); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Checkpoint) open(found location) error {
	if !found.index {
		return c.openFiles([]string{found.file})
	}
	path := filepath.Join(c.Dir, found.file)
	weightMap, err := readIndex(path)
	if err != nil {
		return err
	}
	var shards []string
	for _, shard := range weightMap {
		shards = append(shards, shard)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	if err := c.checkPresent(path, shards); err != nil {
		return err
	}
	if err := c.openFiles(shards); err != nil {
		return err
	}
	return c.checkIndex(path, weightMap)
}

// openFiles opens the files and joins their tensors.
func (c *Checkpoint) openFiles(names []string) error {
	n := 0
	for _, name := range names {
		f, err := OpenFile(filepath.Join(c.Dir, name))
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
		n += f.Len()
	}
	c.Set = Set{source: c.Dir, tensors: c.files[0].tensors}
	if len(c.files) == 1 {
		return nil
	}
	all := make([]Tensor, 0, n)
	for _, f := range c.files {
		all = append(all, f.tensors...)
	}
	slices.SortFunc(all, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < n; i++ {
		if all[i].Name == all[i-1].Name {
			return fmt.Errorf("%s: tensor %s is in two shards, %s and %s", c.Dir, clip(all[i].Name),
				filepath.Base(all[i-1].Path()), filepath.Base(all[i].Path()))
		}
	}
	c.Set.tensors = all
	return nil
}

// checkPresent reports all missing shards at once: a user fetches files, not one error after the other.
func (c *Checkpoint) checkPresent(index string, shards []string) error {
	var missing []string
	for _, shard := range shards {
		if !exists(filepath.Join(c.Dir, shard)) {
			missing = append(missing, clip(shard))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d shards %w: %s: pull the model again", index, len(missing), len(shards), absent("missing"), few(missing))
}

// checkIndex compares the index with what the shards hold.
func (c *Checkpoint) checkIndex(index string, weightMap map[string]string) error {
	for _, key := range sortedKeys(weightMap) {
		t := c.find(key)
		if t == nil {
			return fmt.Errorf("%s: tensor %s is listed but shard %s does not have it", index, clip(key), clip(weightMap[key]))
		}
		if at := filepath.Base(t.Path()); at != weightMap[key] {
			return fmt.Errorf("%s: tensor %s is listed in shard %s but is in %s", index, clip(key), clip(weightMap[key]), clip(at))
		}
	}
	if extra := c.Len() - len(weightMap); extra > 0 {
		for t := range c.All() {
			if _, listed := weightMap[t.Name]; !listed {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %d tensors of the shards are not listed, the first is %s", index, extra, clip(t.Name)))
				break
			}
		}
	}
	return nil
}

// Files returns the open files, sorted by name.
func (c *Checkpoint) Files() []*File { return slices.Clone(c.files) }

// BytesRead is the sum of [File.BytesRead].
func (c *Checkpoint) BytesRead() int64 {
	var n int64
	for _, f := range c.files {
		n += f.BytesRead()
	}
	return n
}

// Release is [Tensor.Release] for all tensors.
func (c *Checkpoint) Release() {
	for _, f := range c.files {
		f.Release()
	}
}

// Close closes all files; every view of their tensors becomes invalid.
func (c *Checkpoint) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
