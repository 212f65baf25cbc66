// Package hubtest is a Hub on the loopback interface, with a content server of another origin and a Xet store, for
// tests. It keeps the rules that the real one is known to keep, records every request, and misbehaves on demand:
//
//	hub := hubtest.New()
//	defer hub.Close()
//	repo := hub.AddModel("acme/tiny")
//	repo.Add("config.json", []byte("{}"))
//	repo.AddXet("model.safetensors", weights)
//	hub.Fault = func(r *hubtest.Request) *hubtest.Fault {
//		if r.Kind == hubtest.Xorb && r.Number == 1 {
//			return &hubtest.Fault{CutAfter: 1000}
//		}
//		return nil
//	}
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gesso-go/gesso/hub/xet"
)

// Server is a Hub. Its fields may be set before the first request, and later by Change.
type Server struct {
	Token   string // if set, requests need it
	Fault   func(*Request) *Fault
	NoXet   bool // says nothing about Xet
	NoV2    bool // the store knows version 1 of reconstructions only
	NoTree  bool // has no listings
	Page    int  // files a page of a listing, default 1000
	XorbCut int  // bytes of chunks in a xorb, default 4 MiB
	// PublicRoutes makes Link headers name the public Hub, as those of a mirror do.
	PublicRoutes bool
	// ManyRanges signs one address for all ranges of a xorb.
	ManyRanges bool

	// Pace is the time after every 8 KiB of content. With it the server's socket buffers are small, too, so that what
	// was sent is about what was received.
	Pace time.Duration

	hub, cdn *httptest.Server

	mu       sync.Mutex
	repos    map[string]*Repo
	xorbs    map[xet.Hash]*xorb
	chunks   map[xet.Hash]place
	files    map[xet.Hash][]term
	requests []Request
	counts   map[Kind]int
}

// Kind is what a request is for.
type Kind string

const (
	Info           Kind = "info"
	Tree           Kind = "tree"
	Head           Kind = "head"
	Resolve        Kind = "resolve" // a file's content, or where it is
	Content        Kind = "content" // from the content server
	XetToken       Kind = "token"
	Reconstruction Kind = "reconstruction"
	Xorb           Kind = "xorb"
	Upload         Kind = "upload"
	Other          Kind = "other"
)

// Request is a request that came.
type Request struct {
	Kind   Kind
	Number int // counted from 1 for each kind
	Method string
	Path   string // with its query
	Range  string
	Auth   string // the Authorization header
	OnCDN  bool
	Sent   int64 // bytes of the body that were written
}

// Fault is what goes wrong with an answer. The zero value answers as usual.
type Fault struct {
	Status      int    // answer with this status and no content
	Body        []byte // answer with this content
	Header      http.Header
	CutAfter    int64  // close the connection after so many bytes of the body
	Truncate    int64  // end the body in good order after so many bytes, the length says so
	CorruptAt   int64  // flip bits of the body's byte CorruptAt-1
	WrongRange  bool   // name another range than is sent
	IgnoreRange bool   // send all from the start
	NoLength    bool   // don't tell the length
	ETag        string // tell this one
	RedirectTo  string // send elsewhere
	Trickle     bool   // after ten bytes, hold the connection and say nothing
	Gzip        bool   // compress although nobody asked
}

// Repo is a repository, or a bucket.
type Repo struct {
	server *Server
	kind   string // models, buckets …
	id     string
	Gated  bool
	Commit string
	files  []*File
}

// File is a file of a repository.
type File struct {
	Path   string
	Size   int64
	Git    string // git hash, of small files
	SHA256 string // of large ones
	Xet    xet.Hash
	inXet  bool
	server *Server
	data   io.ReaderAt
}

// DefaultCommit is the commit of a new repository.
const DefaultCommit = "0123456789abcdef0123456789abcdef01234567"

// New starts a Hub without repositories.
func New() *Server {
	s := &Server{
		repos: map[string]*Repo{}, xorbs: map[xet.Hash]*xorb{}, chunks: map[xet.Hash]place{},
		files: map[xet.Hash][]term{}, counts: map[Kind]int{},
	}
	s.hub = s.start(s.serveHub)
	s.cdn = s.start(s.serveCDN)
	return s
}

func (s *Server) start(handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if tcp, ok := c.(*net.TCPConn); ok && state == http.StateNew && s.pace() > 0 {
			tcp.SetWriteBuffer(8 << 10)
		}
	}
	server.Start()
	return server
}

// URL is the Hub's endpoint.
func (s *Server) URL() string { return s.hub.URL }

// CDN is the content server's address, of another origin.
func (s *Server) CDN() string { return s.cdn.URL }

// Change sets fields while requests may be under way.
func (s *Server) Change(set func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set()
}

func (s *Server) pace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Pace
}

// Close ends the Hub and its connections.
func (s *Server) Close() {
	s.hub.CloseClientConnections()
	s.cdn.CloseClientConnections()
	s.hub.Close()
	s.cdn.Close()
}

// Requests returns what came so far, of the given kinds, or all.
func (s *Server) Requests(kinds ...Kind) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if len(kinds) == 0 || slices.Contains(kinds, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

// Forget clears the record of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.counts = nil, map[Kind]int{}
}

// AddModel adds an empty model repository.
func (s *Server) AddModel(id string) *Repo { return s.add("models", id) }

// AddBucket adds an empty bucket.
func (s *Server) AddBucket(id string) *Repo { return s.add("buckets", id) }

func (s *Server) add(kind, id string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Repo{server: s, kind: kind, id: id, Commit: DefaultCommit}
	s.repos[kind+"/"+id] = r
	return r
}

// Add puts a small file, kept in git.
func (r *Repo) Add(path string, data []byte) *File {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return r.put(&File{Path: path, Size: int64(len(data)), Git: hex.EncodeToString(h.Sum(nil)), data: bytes.NewReader(data)})
}

// AddLFS puts a large file that isn't in the Xet store.
func (r *Repo) AddLFS(path string, data []byte) *File {
	sum := sha256.Sum256(data)
	return r.put(&File{Path: path, Size: int64(len(data)), Git: pointerHash, SHA256: hex.EncodeToString(sum[:]), data: bytes.NewReader(data)})
}

// AddXet puts a large file that is also in the Xet store.
func (r *Repo) AddXet(path string, data []byte) *File {
	return r.AddReader(path, bytes.NewReader(data), int64(len(data)))
}

// AddReader puts a large file, in the Xet store too, that is read when it is needed.
func (r *Repo) AddReader(path string, data io.ReaderAt, size int64) *File {
	f := &File{Path: path, Size: size, Git: pointerHash, data: data, inXet: true}
	h := sha256.New()
	f.Xet = r.server.store(io.TeeReader(io.NewSectionReader(data, 0, size), h))
	f.SHA256 = hex.EncodeToString(h.Sum(nil))
	return r.put(f)
}

// AddKnown puts a large file whose hashes are known, for instance one that a client uploaded to the store. Data may be
// nil; then the file can be fetched by Xet only.
func (r *Repo) AddKnown(path string, size int64, sha256 string, hash xet.Hash, data io.ReaderAt) *File {
	return r.put(&File{Path: path, Size: size, Git: pointerHash, SHA256: sha256, Xet: hash, inXet: true, data: data})
}

// pointerHash stands for the git hash of a large file's pointer, which nobody checks.
const pointerHash = "ffffffffffffffffffffffffffffffffffffffff"

func (r *Repo) put(f *File) *File {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.files = slices.DeleteFunc(r.files, func(g *File) bool { return g.Path == f.Path })
	f.server = r.server
	r.files = append(r.files, f)
	return f
}

// Files returns the repository's files.
func (r *Repo) Files() []*File {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return slices.Clone(r.files)
}

// Bytes returns the file's content.
func (f *File) Bytes() []byte {
	data := make([]byte, f.Size)
	f.data.ReadAt(data, 0)
	return data
}

func (r *Repo) find(path string) *File {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for _, f := range r.files {
		if f.Path == path {
			return f
		}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

func hubError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("X-Request-Id", "Root=1-abc")
	w.WriteHeader(status)
}

func unescapeAll(s string) string { return strings.ReplaceAll(s, "%2F", "/") }
