package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fromCache returns what the cache has of the commit, if that is all that is wanted. Else the error is ErrIncomplete and
// names what is missing, or ErrNotCached. Certain is false where nothing tells whether files are missing: in a snapshot
// without a listing that is no pipeline.
func (s *session) fromCache(ref Ref, commit string, opt Options) (r *Result, certain bool, err error) {
	dir := s.store.snapshot(ref, commit)
	entries, listed := s.store.cachedTree(ref, commit)
	if _, err := os.Stat(dir); err != nil && !listed {
		return nil, false, errorf(ErrNotCached, nil, "%s (commit %.7s) is not in the cache %s", ref, commit, s.CacheDir)
	}
	var missing []string
	if listed {
		chosen, err := chooseListed(ref, entries, opt, func(e Entry) ([]byte, error) {
			return s.readCached(ref, commit, e)
		})
		if err != nil {
			return nil, false, err
		}
		for _, e := range chosen {
			if !s.cached(ref, commit, e) {
				missing = append(missing, e.Path)
			}
		}
		entries = chosen
	} else {
		if entries, missing, err = unlisted(dir, ref, opt); err != nil {
			return nil, false, err
		}
	}
	if len(missing) > 0 {
		return nil, false, s.incomplete(ref, commit, missing)
	}
	pipeline := len(opt.Include) == 0 && ref.Path == "" && regular(s.store.pointer(ref, commit, "model_index.json"), -1)
	return s.result(ref, commit, entries), listed || pipeline, nil
}

// readCached returns the content of a small file that the cache has, in the snapshot or as a blob.
func (s *session) readCached(ref Ref, commit string, e Entry) ([]byte, error) {
	for _, path := range []string{s.store.pointer(ref, commit, e.Path), s.store.blob(ref, e.etag())} {
		if data, err := os.ReadFile(path); err == nil {
			return data, nil
		}
	}
	return nil, s.incomplete(ref, commit, []string{e.Path})
}

// relink completes a snapshot whose listing the cache has with contents that are there, too, under other names. Where
// that isn't enough it returns what is missing, and localErr where nothing could be done.
func (s *session) relink(ctx context.Context, ref Ref, commit string, opt Options, localErr error) (*Result, error) {
	entries, listed := s.store.cachedTree(ref, commit)
	if !listed {
		return nil, localErr
	}
	chosen, err := chooseListed(ref, entries, opt, func(e Entry) ([]byte, error) { return s.readCached(ref, commit, e) })
	if err != nil {
		return nil, localErr
	}
	for _, e := range chosen {
		j := s.job(ref, commit, e)
		j.localOnly = true
		if err := j.run(ctx); err != nil && !errors.Is(err, ErrNotCached) {
			return nil, localErr
		}
	}
	r, _, err := s.fromCache(ref, commit, opt)
	return r, err
}

// notCached says that the cache doesn't know the revision, and what it has of a download that broke off before the
// revision was noted.
func (s *session) notCached(ref Ref, opt Options) error {
	msg := fmt.Sprintf("%s is not in the cache %s", ref, s.CacheDir)
	for _, r := range s.store.revisions(ref) {
		if len(r.Names) > 0 {
			continue
		}
		switch _, _, err := s.fromCache(ref, r.Commit, opt); {
		case err == nil:
			ref.Revision = r.Commit
			return errorf(ErrNotCached, nil, "%s; a commit of it is, ask for %s", msg, ref)
		case errors.Is(err, ErrIncomplete):
			return errorf(ErrIncomplete, err, "%s; a download of it broke off: %v", msg, err)
		}
	}
	return errorf(ErrNotCached, nil, "%s", msg)
}

func (s *session) incomplete(ref Ref, commit string, missing []string) error {
	const most = 8
	list := strings.Join(missing[:min(most, len(missing))], ", ")
	if n := len(missing) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return errorf(ErrIncomplete, nil, "%s (commit %.7s) is incomplete in the cache, missing: %s", ref, commit, list)
}

// unlisted judges a snapshot that came without a listing, from older clients: by what its own files say must be there.
func unlisted(dir string, ref Ref, opt Options) (entries []Entry, missing []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		info, err := os.Stat(p)
		if err != nil { // a link to a blob that is gone
			missing = append(missing, rel)
			return nil
		}
		entries = append(entries, Entry{Path: rel, Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(entries) == 0 {
		return nil, []string{"all files"}, nil
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) }
	entries, err = choose(ref, entries, opt, func(e Entry) ([]byte, error) { return read(e.Path) })
	if err != nil {
		return nil, nil, err
	}
	excluded := compile(opt.Exclude)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Path] = true
	}
	for _, p := range opt.Include {
		if !strings.ContainsAny(p, "*?[") && !strings.HasSuffix(p, "/") && ref.Path == "" && !names[p] {
			missing = append(missing, p)
		}
	}
	for _, e := range entries {
		if strings.Contains(path.Base(e.Path), ".index.") {
			data, err := read(e.Path)
			if err != nil {
				return nil, nil, err
			}
			for _, shard := range shardsOf(data) {
				if p := path.Join(path.Dir(e.Path), shard); !names[p] && !excluded.match(p) {
					missing = append(missing, p)
				}
			}
		}
	}
	if len(opt.Include) == 0 && ref.Path == "" && names["model_index.json"] {
		data, err := read("model_index.json")
		if err != nil {
			return nil, nil, err
		}
		m, err := parseModelIndex(data)
		if err != nil {
			return nil, nil, err
		}
		for _, need := range componentNeeds(m, entries) {
			if !excluded.match(need) {
				missing = append(missing, need)
			}
		}
	}
	slices.Sort(missing)
	return entries, slices.Compact(missing), nil
}

// shardsOf returns the weight files that an index names, each once. What isn't an index names none.
func shardsOf(data []byte) []string {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(data, &index) != nil {
		return nil
	}
	var shards []string
	for _, shard := range index.WeightMap {
		if safePath(shard) == nil && !slices.Contains(shards, shard) {
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// componentNeeds returns what the pipeline's components lack, as names or patterns.
func componentNeeds(m modelIndex, entries []Entry) (missing []string) {
	has := func(folder string, ok func(base string) bool) bool {
		return slices.ContainsFunc(entries, func(e Entry) bool { return path.Dir(e.Path) == folder && ok(path.Base(e.Path)) })
	}
	named := func(names ...string) func(string) bool {
		return func(base string) bool { return slices.Contains(names, base) }
	}
	weights := func(base string) bool {
		return strings.HasSuffix(base, ".safetensors") || strings.HasSuffix(base, ".bin") || strings.Contains(base, ".index.")
	}
	for name, c := range m.Components {
		class := c[1]
		switch {
		case class == "":
		case strings.Contains(class, "Scheduler"):
			if !has(name, named("scheduler_config.json", "config.json")) {
				missing = append(missing, name+"/scheduler_config.json")
			}
		case strings.Contains(class, "Tokenizer"):
			if !has(name, named("tokenizer.json", "vocab.json", "spiece.model", "tekken.json", "sentencepiece.bpe.model", "tokenizer.model")) {
				missing = append(missing, name+"/tokenizer.json")
			}
		case strings.Contains(class, "Processor"), strings.Contains(class, "FeatureExtractor"):
			if !has(name, func(base string) bool { return strings.HasSuffix(base, ".json") }) {
				missing = append(missing, name+"/preprocessor_config.json")
			}
		default:
			if !has(name, named("config.json")) {
				missing = append(missing, name+"/config.json")
			}
			if !has(name, weights) {
				missing = append(missing, name+"/*.safetensors")
			}
		}
	}
	return missing
}
