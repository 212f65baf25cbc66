package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/gesso-go/gesso/hub/xet"
	"github.com/gesso-go/gesso/internal/jsonwords"
)

// Entry is a file of a repository as its listing has it.
type Entry struct {
	Path   string
	Size   int64  // bytes, -1 if the Hub doesn't tell
	Git    string // git's sha1 of a small file; for a large one, of its pointer
	SHA256 string // of a large file's content, else empty
	Xet    string // Xet hash, empty if the file isn't stored there
}

// etag names the content in the cache: its sha256, or git's sha1, or for a bucket the Xet hash.
func (e Entry) etag() string {
	switch {
	case e.SHA256 != "":
		return e.SHA256
	case e.Git != "":
		return e.Git
	}
	return e.Xet
}

var (
	sha256Name = regexp.MustCompile(`^[0-9a-f]{64}$`)
	etagName   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,199}$`)
)

// maxFile is a size beyond all files: the Hub takes 500 GB at most. Sums of such sizes still fit.
const maxFile = 1 << 44

// check refuses a listing entry that can't be used. Its path is looked at when the file is chosen: a repository may hold
// names that can't be files here, and none of them need be wanted.
func (e Entry) check() error {
	if e.Size < -1 || e.Size > maxFile {
		return fmt.Errorf("%s has the size %d", e.Path, e.Size)
	}
	if e.SHA256 != "" && !sha256Name.MatchString(e.SHA256) {
		return fmt.Errorf("%s has the bad sha256 %.70q", e.Path, e.SHA256)
	}
	if e.Xet != "" {
		if _, err := xet.ParseHash(e.Xet); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	if !etagName.MatchString(e.etag()) {
		return fmt.Errorf("%s has the bad identity %.70q", e.Path, e.etag())
	}
	return nil
}

// treeItem is a file or folder as the Hub lists it.
type treeItem struct {
	Type string  `json:"type"`
	OID  string  `json:"oid"`
	Size *int64  `json:"size"`
	Path string  `json:"path"`
	Xet  *string `json:"xetHash"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size *int64 `json:"size"`
	} `json:"lfs"`
}

// parseTreePage reads one page of a listing. Folders are left out.
func parseTreePage(data []byte) ([]Entry, error) {
	var items []treeItem
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("listing: %w", jsonwords.Explain(data, err))
	}
	if items == nil {
		return nil, fmt.Errorf("listing: null in place of files")
	}
	var entries []Entry
	for _, it := range items {
		if it.Type != "file" {
			continue
		}
		e := Entry{Path: it.Path, Git: it.OID, Size: -1}
		if it.Size != nil {
			e.Size = *it.Size
		}
		if it.LFS != nil {
			e.SHA256 = it.LFS.OID
			if it.LFS.Size != nil {
				e.Size = *it.LFS.Size
			}
		}
		if it.Xet != nil {
			e.Xet = *it.Xet
		}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("listing: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// The listing cache of huggingface_hub 2.x (_tree_cache.py).
type treeFile struct {
	Version int                  `json:"format_version"`
	Files   map[string]treeEntry `json:"files"`
}

type treeEntry struct {
	Size    int64   `json:"size"`
	BlobID  string  `json:"blob_id"`
	SHA256  *string `json:"lfs_sha256,omitempty"`
	LFSSize *int64  `json:"lfs_size,omitempty"`
	Xet     *string `json:"xet_hash,omitempty"`
}

func parseTreeCache(data []byte) ([]Entry, error) {
	var f treeFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, jsonwords.Explain(data, err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("format version %d, expected 1", f.Version)
	}
	if len(f.Files) == 0 {
		return nil, fmt.Errorf("no files")
	}
	entries := []Entry{}
	for path, t := range f.Files {
		e := Entry{Path: path, Size: t.Size, Git: t.BlobID}
		if t.SHA256 != nil {
			e.SHA256 = *t.SHA256
		}
		if t.LFSSize != nil {
			e.Size = *t.LFSSize
		}
		if t.Xet != nil {
			e.Xet = *t.Xet
		}
		if err := e.check(); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	sortEntries(entries)
	return entries, nil
}

func formatTreeCache(entries []Entry) ([]byte, error) {
	f := treeFile{Version: 1, Files: map[string]treeEntry{}}
	for _, e := range entries {
		t := treeEntry{Size: e.Size, BlobID: e.Git}
		if e.SHA256 != "" {
			t.SHA256, t.LFSSize = &e.SHA256, &e.Size
		}
		if e.Xet != "" {
			t.Xet = &e.Xet
		}
		f.Files[e.Path] = t
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(f)
	return out.Bytes(), err
}

func (s *store) treePath(ref Ref, commit string) string {
	return filepath.Join(s.folder(ref), "trees", commit+".json")
}

// cachedTree returns the listing of the commit. A file that can't be read or understood counts as none.
func (s *store) cachedTree(ref Ref, commit string) ([]Entry, bool) {
	data, err := os.ReadFile(s.treePath(ref, commit))
	if err != nil {
		return nil, false
	}
	entries, err := parseTreeCache(data)
	return entries, err == nil
}

// setTree records the listing, unless a size is not known: huggingface_hub would trust it.
func (s *store) setTree(ref Ref, commit string, entries []Entry) error {
	for _, e := range entries {
		if e.Size < 0 || e.Git == "" {
			return nil
		}
	}
	data, err := formatTreeCache(entries)
	if err != nil {
		return err
	}
	return writeFile(s.treePath(ref, commit), data, 0o600)
}
