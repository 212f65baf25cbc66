package hubtest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gesso-go/gesso/hub/xet"
)

// begin records the request and asks for its fault.
func (s *Server) begin(r *http.Request, kind Kind, onCDN bool) (index int, fault *Fault) {
	s.mu.Lock()
	s.counts[kind]++
	req := Request{
		Kind: kind, Number: s.counts[kind], Method: r.Method, Path: r.URL.RequestURI(), Range: r.Header.Get("Range"),
		Auth: r.Header.Get("Authorization"), OnCDN: onCDN,
	}
	s.requests = append(s.requests, req)
	index = len(s.requests) - 1
	choose := s.Fault
	s.mu.Unlock()
	if choose != nil {
		fault = choose(&req)
	}
	if fault == nil {
		fault = &Fault{}
	}
	return index, fault
}

func (s *Server) sent(index int, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index < len(s.requests) {
		s.requests[index].Sent += n
	}
}

// early answers a fault that leaves no usual answer.
func early(w http.ResponseWriter, f *Fault) bool {
	for k, v := range f.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	switch {
	case f.RedirectTo != "":
		w.Header().Set("Location", f.RedirectTo)
		w.WriteHeader(http.StatusFound)
		return true
	case f.Status != 0 || f.Body != nil:
		w.WriteHeader(cmp.Or(f.Status, http.StatusOK))
		w.Write(f.Body)
		return true
	}
	return false
}

func (s *Server) serveHub(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v2/") || strings.HasPrefix(path, "/xorb/") {
		s.serveStore(w, r, path)
		return
	}
	kind, repo, rest := s.route(path)
	if kind == Resolve && r.Method == http.MethodHead {
		kind = Head
	}
	index, fault := s.begin(r, kind, false)
	if early(w, fault) {
		return
	}
	switch {
	case repo == nil:
		hubError(w, 404, "RepoNotFound", "Repository not found")
		return
	case s.Token != "" && r.Header.Get("Authorization") == "":
		hubError(w, 401, "RepoNotFound", "Repository not found")
		return
	case s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token:
		w.Header().Set("X-Error-Message", "Invalid credentials in Authorization header")
		w.WriteHeader(401)
		return
	case repo.Gated:
		status := 403
		if r.Header.Get("Authorization") == "" {
			status = 401
		}
		hubError(w, status, "GatedRepo", "Access to model "+repo.id+" is restricted and you are not in the authorized list.")
		return
	}
	switch kind {
	case Info:
		if rev := unescapeAll(rest); rev != "main" && rev != repo.Commit && rev != "refs/pr/1" {
			hubError(w, 404, "RevisionNotFound", "Invalid rev id: "+rev)
			return
		}
		var siblings []map[string]string
		for _, f := range repo.Files() {
			siblings = append(siblings, map[string]string{"rfilename": f.Path})
		}
		writeJSON(w, map[string]any{"_id": "x", "id": repo.id, "modelId": repo.id, "sha": repo.Commit, "private": false,
			"siblings": siblings, "tags": []string{"license:apache-2.0"}, "downloads": 0, "likes": 0})
	case Tree:
		s.serveTree(w, r, repo)
	case XetToken:
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		exp := time.Now().Add(time.Hour).Unix()
		w.Header().Set("X-Xet-Cas-Url", s.hub.URL)
		w.Header().Set("X-Xet-Access-Token", "xet_test")
		w.Header().Set("X-Xet-Token-Expiration", fmt.Sprint(exp))
		s.mu.Lock()
		n := s.counts[XetToken]
		s.mu.Unlock()
		writeJSON(w, map[string]any{"casUrl": s.hub.URL, "accessToken": fmt.Sprintf("xet_test%d", n), "exp": exp})
	case Head, Resolve:
		s.serveResolve(w, r, repo, rest, fault, index)
	default:
		w.WriteHeader(404)
	}
}

// route finds the repository and what is asked of it.
func (s *Server) route(path string) (Kind, *Repo, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if parts[0] == "api" && len(parts) >= 4 {
		repo := s.repos[parts[1]+"/"+parts[2]+"/"+parts[3]]
		if len(parts) < 5 {
			return Other, repo, ""
		}
		rest := strings.Join(parts[5:], "/")
		switch parts[4] {
		case "revision":
			return Info, repo, rest
		case "tree":
			if s.NoTree {
				return Other, repo, rest
			}
			return Tree, repo, rest
		case "xet-read-token":
			return XetToken, repo, rest
		}
		return Other, repo, rest
	}
	kind := "models"
	if len(parts) > 0 && (parts[0] == "buckets" || parts[0] == "datasets") {
		kind, parts = parts[0], parts[1:]
	}
	if len(parts) < 4 || parts[2] != "resolve" {
		return Other, nil, ""
	}
	repo := s.repos[kind+"/"+parts[0]+"/"+parts[1]]
	rest := parts[4:]
	if kind == "buckets" {
		rest = parts[3:]
	}
	name, _ := url.PathUnescape(strings.Join(rest, "/"))
	return Resolve, repo, name
}

func (s *Server) serveTree(w http.ResponseWriter, r *http.Request, repo *Repo) {
	files := repo.Files()
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	page := s.Page
	if page == 0 {
		page = 1000
	}
	end := min(from+page, len(files))
	if end < len(files) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&expand=false&cursor=%d>; rel="next"`, s.hub.URL, r.URL.EscapedPath(), end))
	}
	items := []map[string]any{{"type": "directory", "oid": pointerHash, "size": 0, "path": "folder"}}
	for _, f := range files[from:end] {
		it := map[string]any{"type": "file", "size": f.Size, "path": f.Path}
		if repo.kind == "buckets" {
			it["xetHash"], it["mtime"] = f.Xet.String(), "2026-01-01T00:00:00Z"
		} else {
			it["oid"] = f.Git
			if f.SHA256 != "" {
				it["lfs"] = map[string]any{"oid": f.SHA256, "size": f.Size, "pointerSize": 134}
			}
			if f.inXet && !s.NoXet {
				it["xetHash"] = f.Xet.String()
			}
		}
		items = append(items, it)
	}
	writeJSON(w, items)
}

func (s *Server) serveResolve(w http.ResponseWriter, r *http.Request, repo *Repo, name string, fault *Fault, index int) {
	f := repo.find(name)
	h := w.Header()
	h.Set("X-Repo-Commit", repo.Commit)
	if f == nil {
		hubError(w, 404, "EntryNotFound", "Entry not found")
		return
	}
	if f.SHA256 == "" {
		h.Set("ETag", `"`+f.Git+`"`)
		if fault.ETag != "" {
			h.Set("ETag", fault.ETag)
		}
		s.serveContent(w, r, f, fault, index)
		return
	}
	if repo.kind != "buckets" {
		h.Set("X-Linked-Etag", `"`+f.SHA256+`"`)
		if fault.ETag != "" {
			h.Set("X-Linked-Etag", fault.ETag)
		}
	}
	h.Set("X-Linked-Size", fmt.Sprint(f.Size))
	if f.inXet && !s.NoXet {
		h.Set("X-Xet-Hash", f.Xet.String())
		h.Set("ETag", `"`+f.Xet.String()+`"`)
		base := s.hub.URL
		if s.PublicRoutes {
			base = "https://huggingface.co"
		}
		route := fmt.Sprintf("%s/api/%s/%s/xet-read-token", base, repo.kind, repo.id)
		if repo.kind != "buckets" {
			route += "/" + repo.Commit
		}
		h.Set("Link", fmt.Sprintf(`<%s>; rel="xet-auth", <%s/v1/reconstructions/%s>; rel="xet-reconstruction-info"`, route, base, f.Xet))
	}
	h.Set("Location", fmt.Sprintf("%s/%s/%s/%s?sig=1", s.cdn.URL, repo.kind, repo.id, (&url.URL{Path: f.Path}).EscapedPath()))
	w.WriteHeader(http.StatusFound)
}

func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	index, fault := s.begin(r, Content, true)
	if early(w, fault) {
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	var f *File
	if len(parts) == 4 {
		s.mu.Lock()
		repo := s.repos[strings.Join(parts[:3], "/")]
		s.mu.Unlock()
		if repo != nil {
			f = repo.find(parts[3])
		}
	}
	if f == nil || f.data == nil || r.URL.Query().Get("sig") != "1" {
		w.WriteHeader(403)
		return
	}
	w.Header().Set("ETag", `"cdn"`)
	if fault.ETag != "" {
		w.Header().Set("ETag", fault.ETag)
	}
	s.serveContent(w, r, f, fault, index)
}

func (s *Server) serveContent(w http.ResponseWriter, r *http.Request, f *File, fault *Fault, index int) {
	want := xet.Range{First: 0, End: f.Size}
	status := http.StatusOK
	if h := r.Header.Get("Range"); h != "" && !fault.IgnoreRange {
		first, last, _ := strings.Cut(strings.TrimPrefix(h, "bytes="), "-")
		a, err := strconv.ParseInt(first, 10, 64)
		b := f.Size - 1
		if last != "" && err == nil {
			b, err = strconv.ParseInt(last, 10, 64)
		}
		if err != nil || a >= f.Size || b < a {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		want = xet.Range{First: a, End: min(b+1, f.Size)}
		status = http.StatusPartialContent
	}
	s.send(w, r, io.NewSectionReader(f.data, want.First, want.Len()), want, f.Size, status, fault, index)
}

// send writes a body of the range, with its fault.
func (s *Server) send(w http.ResponseWriter, r *http.Request, body io.Reader, want xet.Range, total int64, status int, fault *Fault, index int) {
	length := want.Len()
	if status == http.StatusPartialContent {
		shift := int64(0)
		if fault.WrongRange {
			shift = 1
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", want.First+shift, want.End-1+shift, total+shift))
	}
	if fault.Gzip {
		var z bytes.Buffer
		g := gzip.NewWriter(&z)
		io.Copy(g, body)
		g.Close()
		w.Header().Set("Content-Encoding", "gzip")
		body, length = &z, int64(z.Len())
	}
	if fault.Truncate > 0 {
		length = min(length, fault.Truncate)
		body = io.LimitReader(body, length)
	}
	if !fault.NoLength {
		w.Header().Set("Content-Length", fmt.Sprint(length))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	limit := length
	if fault.CutAfter > 0 {
		limit = min(limit, fault.CutAfter)
	}
	if fault.Trickle {
		limit = min(limit, 10)
	}
	if fault.CorruptAt > 0 {
		body = &corrupter{r: body, at: fault.CorruptAt - 1}
	}
	if !s.copy(w, body, limit, index) {
		return
	}
	switch {
	case fault.Trickle:
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case fault.CutAfter > 0 && limit < length:
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// copy sends n bytes, at the server's pace, and reports whether all went out.
func (s *Server) copy(w http.ResponseWriter, body io.Reader, n int64, index int) bool {
	pace := s.pace()
	if pace == 0 {
		sent, err := io.CopyN(w, body, n)
		s.sent(index, sent)
		return err == nil
	}
	const piece = 8 << 10
	for n > 0 {
		sent, err := io.CopyN(w, body, min(n, piece))
		s.sent(index, sent)
		if err != nil {
			return false
		}
		n -= sent
		http.NewResponseController(w).Flush()
		time.Sleep(pace)
	}
	return true
}

type corrupter struct {
	r  io.Reader
	at int64
}

func (c *corrupter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.at >= 0 && c.at < int64(n) {
		p[c.at] ^= 0x55
	}
	c.at -= int64(n)
	return n, err
}
