package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/hub/internal/wire"
	"github.com/gesso-go/gesso/internal/jsonwords"
	"golang.org/x/sync/errgroup"
)

// Description says what a repository, or a local folder, holds.
type Description struct {
	Name       string
	Commit     string // empty for a local folder
	Class      string // of the pipeline or the model, empty if nothing says
	License    string // empty if nothing says
	Components []Component
	Files      int   // that Pull brings
	Size       int64 // of these, in bytes
	Cached     int64 // of these, in the cache already
}

// Component is a part of a pipeline, or the one part of a model.
type Component struct {
	Name           string // its folder, empty for the repository itself
	Library, Class string
	Files          int
	Size           int64
	Parameters     int64            // elements of all stored tensors
	DTypes         map[string]int64 // the same, by the type's name in safetensors: BF16, F32 …
	Unread         int              // weight files that are no safetensors: their parameters aren't counted
}

// Describe tells what a reference means, without downloading it: of weights it reads the headers only. What is cached
// isn't asked for, and the cache answers for a Hub that can't be reached.
func Describe(ctx context.Context, cfg Config, reference string, opt Options) (*Description, error) {
	if info, err := os.Stat(reference); err == nil && info.IsDir() {
		return describeFolder(ctx, reference, opt)
	}
	s, err := newSession(cfg, opt.Progress)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ref, err := ParseRef(reference, s.Endpoint)
	if err != nil {
		return nil, err
	}
	if ref, err = ref.At(opt.Revision); err != nil {
		return nil, err
	}
	commit, known := s.store.cachedCommit(ref)
	var info repoInfo
	if ref.Kind != Bucket {
		if info, err = s.info(ctx, ref, known); err == nil {
			commit = info.SHA
		} else if ctx.Err() != nil || !unreachable(err) && !refused(err) {
			return nil, err
		} else if _, statErr := os.Stat(s.store.snapshot(ref, commit)); !known || statErr != nil {
			if refused(err) {
				return nil, err
			}
			return nil, neither(s.notCached(ref, opt), err)
		} else {
			s.Warn(fmt.Sprintf("%v: this is what the cache has", err))
			return s.describeCached(ctx, ref, commit, opt)
		}
	}
	var entries []Entry
	if ref.Kind == Bucket {
		if entries, err = s.tree(ctx, ref, ""); err == nil {
			commit = listingName(entries)
		}
	} else {
		entries, err = s.listing(ctx, ref, commit, &info, true)
	}
	if err != nil {
		return nil, err
	}
	opt.DryRun = true
	chosen, err := s.choose(ctx, ref, commit, entries, opt)
	if err != nil {
		return nil, err
	}
	if chosen, err = s.identify(ctx, ref, commit, chosen); err != nil {
		return nil, err
	}
	c := contents{entries: chosen, head: func(ctx context.Context, e Entry, n int64) ([]byte, error) {
		return s.head(ctx, ref, commit, e, n)
	}}
	d, err := c.describe(ctx, s.Workers)
	if err != nil {
		return nil, err
	}
	d.Name, d.Commit, d.License = ref.String(), commit, license(info)
	for _, e := range chosen {
		if s.cached(ref, commit, e) {
			d.Cached += max(e.Size, 0)
		}
	}
	return d, nil
}

// describeCached describes a snapshot as it is on the disk.
func (s *session) describeCached(ctx context.Context, ref Ref, commit string, opt Options) (*Description, error) {
	d, err := describeFolder(ctx, s.store.snapshot(ref, commit), opt)
	if err == nil {
		d.Name, d.Commit, d.Cached = ref.String(), commit, d.Size
	}
	return d, err
}

func describeFolder(ctx context.Context, dir string, opt Options) (*Description, error) {
	entries, _, err := unlisted(dir, Ref{Kind: Model, Repo: dir}, opt)
	if err != nil {
		return nil, err
	}
	c := contents{entries: entries, head: func(_ context.Context, e Entry, n int64) ([]byte, error) {
		return readHead(filepath.Join(dir, filepath.FromSlash(e.Path)), n)
	}}
	d, err := c.describe(ctx, 1)
	if err != nil {
		return nil, err
	}
	if d.Class == "" && !slices.ContainsFunc(d.Components, func(c Component) bool { return c.Class != "" || len(c.DTypes) > 0 || c.Unread > 0 }) {
		return nil, fmt.Errorf("%s: holds no model: expected a Diffusers folder with model_index.json, or the folder of one of its components", dir)
	}
	d.Name = dir
	if card, err := os.ReadFile(filepath.Join(dir, "README.md")); err == nil {
		d.License = cardLicense(string(card))
	}
	return d, nil
}

// head returns the first n bytes of a file, from the cache or the Hub.
func (s *session) head(ctx context.Context, ref Ref, commit string, e Entry, n int64) (data []byte, err error) {
	if s.cached(ref, commit, e) {
		return readHead(s.store.pointer(ref, commit, e.Path), n)
	}
	if e.Size >= 0 {
		n = min(n, e.Size)
	}
	if n == 0 {
		return nil, nil
	}
	err = s.meta.Retry(ctx, func() error {
		resp, err := s.meta.Do(ctx, wire.Request{URL: s.fileURL(ref, commit, e.Path),
			Header: http.Header{"Range": {fmt.Sprintf("bytes=0-%d", n-1)}}})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := wire.Plain(resp.Response)
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(body, n)) // a server that ignores ranges sends all
		return err
	})
	ref.Path = e.Path
	return data, s.explain(ref, err)
}

func readHead(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// contents are files of which the beginnings can be read.
type contents struct {
	entries []Entry
	head    func(ctx context.Context, e Entry, n int64) ([]byte, error)
}

func (c contents) find(name string) (Entry, bool) {
	i := slices.IndexFunc(c.entries, func(e Entry) bool { return e.Path == name })
	if i < 0 {
		return Entry{}, false
	}
	return c.entries[i], true
}

// maxConfig is the most that is read of a JSON file.
const maxConfig = 4 << 20

func (c contents) describe(ctx context.Context, workers int) (*Description, error) {
	d := &Description{}
	var m modelIndex
	if e, ok := c.find("model_index.json"); ok {
		data, err := c.head(ctx, e, maxConfig)
		if err != nil {
			return nil, err
		}
		if m, err = parseModelIndex(data); err != nil {
			return nil, err
		}
		d.Class = m.Class
	} else if e, ok := c.find("config.json"); ok {
		data, err := c.head(ctx, e, maxConfig)
		if err != nil {
			return nil, err
		}
		d.Class = configClass(data)
	}
	parts := map[string]*Component{}
	for name, pair := range m.Components {
		if pair[1] != "" {
			parts[name] = &Component{Name: name, Library: pair[0], Class: pair[1]}
		}
	}
	if d.Class == "" || len(m.Components) == 0 {
		parts[""] = &Component{Class: d.Class}
	}
	headers := make([]map[string]int64, len(c.entries))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(workers, 1))
	for i, e := range c.entries {
		d.Files++
		d.Size += max(e.Size, 0)
		if strings.HasSuffix(e.Path, ".safetensors") {
			g.Go(func() (err error) {
				headers[i], err = c.dtypes(gctx, e)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, e := range c.entries {
		top, _, nested := strings.Cut(e.Path, "/")
		p := parts[top]
		if p == nil || !nested {
			p = parts[""]
		}
		if p == nil {
			continue
		}
		p.Files++
		p.Size += max(e.Size, 0)
		for dtype, n := range headers[i] {
			if p.DTypes == nil {
				p.DTypes = map[string]int64{}
			}
			p.DTypes[dtype] += n
			p.Parameters += n
		}
		switch path.Ext(e.Path) {
		case ".bin", ".pt", ".pth", ".ckpt", ".gguf":
			p.Unread++
		}
	}
	for _, p := range parts {
		d.Components = append(d.Components, *p)
	}
	slices.SortFunc(d.Components, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return d, nil
}

// maxTensorHeader is the largest safetensors header that is read.
const maxTensorHeader = 32 << 20

// dtypes counts the elements of a safetensors file by type.
func (c contents) dtypes(ctx context.Context, e Entry) (map[string]int64, error) {
	n := int64(64 << 10)
	for {
		data, err := c.head(ctx, e, n)
		if err != nil {
			return nil, err
		}
		counts, need, err := tensorTypes(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if counts != nil {
			return counts, nil
		}
		if need <= n || int64(len(data)) < n {
			return nil, fmt.Errorf("%s: not a safetensors file: it ends inside its header", e.Path)
		}
		n = need
	}
}

// tensorTypes reads the header of a safetensors file. If data doesn't reach to its end counts is nil, and need is how
// many bytes would.
func tensorTypes(data []byte) (counts map[string]int64, need int64, err error) {
	if len(data) < 8 {
		return nil, 8, nil
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxTensorHeader {
		return nil, 0, fmt.Errorf("not a safetensors file, or its header of %d bytes is over the limit of %d", n, maxTensorHeader)
	}
	if need = 8 + int64(n); int64(len(data)) < need {
		return nil, need, nil
	}
	var tensors map[string]json.RawMessage
	header := bytes.TrimRight(data[8:need], " \x00")
	if err := json.Unmarshal(header, &tensors); err != nil {
		return nil, 0, fmt.Errorf("safetensors header: %w", jsonwords.Explain(header, err))
	}
	counts = map[string]int64{}
	for name, raw := range tensors {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			DType string  `json:"dtype"`
			Shape []int64 `json:"shape"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, 0, fmt.Errorf("safetensors header: %.100q: %w", name, jsonwords.Explain(raw, err))
		}
		elements := int64(1)
		for _, d := range t.Shape {
			if d < 0 || d > 0 && elements > (1<<62)/d {
				return nil, 0, fmt.Errorf("safetensors header: %.100q has a bad shape", name)
			}
			elements *= d
		}
		counts[t.DType] += elements
	}
	return counts, need, nil
}

// configClass returns the class that a model's config.json names.
func configClass(data []byte) string {
	var c struct {
		Class         string   `json:"_class_name"`
		Architectures []string `json:"architectures"`
	}
	if json.Unmarshal(data, &c) == nil && c.Class == "" && len(c.Architectures) > 0 {
		return c.Architectures[0]
	}
	return c.Class
}

// license returns what the Hub says about the repository's licence.
func license(info repoInfo) string {
	var card struct {
		Name string `json:"license_name"`
	}
	if json.Unmarshal(info.CardData, &card) == nil && card.Name != "" {
		return card.Name
	}
	for _, tag := range info.Tags {
		if name, ok := strings.CutPrefix(tag, "license:"); ok {
			return name
		}
	}
	return ""
}

// cardLicense reads the licence from the front matter of a README.md.
func cardLicense(card string) string {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(card, "\r\n", "\n"), "---\n")
	if !ok {
		return ""
	}
	front, _, _ := strings.Cut(rest, "\n---")
	found := map[string]string{}
	for line := range strings.Lines(front) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			found[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return cmp.Or(found["license_name"], found["license"])
}
