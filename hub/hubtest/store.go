package hubtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/hub/xet"
)

// A xorb as it is stored: data, and where each chunk ends in it.
type xorb struct {
	data  []byte
	ends  []int64 // offset behind chunk i
	sizes []int64 // uncompressed
}

// A place is a chunk's xorb and number.
type place struct {
	xorb  xet.Hash
	index int64
}

type term struct {
	xorb   xet.Hash
	chunks xet.Range
	size   int64
}

// store cuts r into chunks, packs those that are new into xorbs, and returns the file's hash. Compression schemes take
// turns, so that all of them are in use.
func (s *Server) store(r io.Reader) xet.Hash {
	limit := s.XorbCut
	if limit == 0 {
		limit = 4 << 20
	}
	type piece struct {
		hash xet.Hash
		size int64
	}
	var tree xet.Tree
	var pieces []piece
	pending := map[xet.Hash]int64{}
	var packing *xorb
	var packed []xet.Leaf
	flush := func() {
		if packing == nil {
			return
		}
		var t xet.Tree
		for _, l := range packed {
			t.Add(l)
		}
		name := t.Root()
		s.mu.Lock()
		s.xorbs[name] = packing
		for i, l := range packed {
			s.chunks[l.Hash] = place{name, int64(i)}
		}
		s.mu.Unlock()
		packing, packed = nil, nil
		clear(pending)
	}
	err := xet.Chunks(r, func(chunk []byte) error {
		leaf := xet.Leaf{Hash: xet.HashChunk(chunk), Size: uint64(len(chunk))}
		tree.Add(leaf)
		pieces = append(pieces, piece{leaf.Hash, int64(leaf.Size)})
		s.mu.Lock()
		_, known := s.chunks[leaf.Hash]
		s.mu.Unlock()
		if _, here := pending[leaf.Hash]; known || here {
			return nil
		}
		if packing == nil {
			packing = &xorb{}
		}
		pending[leaf.Hash] = int64(len(packed))
		var err error
		packing.data, err = xet.AppendChunk(packing.data, chunk, xet.Scheme(len(pieces)%3))
		packing.ends = append(packing.ends, int64(len(packing.data)))
		packing.sizes = append(packing.sizes, int64(len(chunk)))
		packed = append(packed, leaf)
		if len(packing.data) >= limit || len(packed) == 8192 {
			flush()
		}
		return err
	})
	flush()
	if err != nil {
		panic(err)
	}
	hash := tree.FileHash()
	s.mu.Lock()
	defer s.mu.Unlock()
	var terms []term
	for _, p := range pieces {
		at := s.chunks[p.hash]
		if n := len(terms); n > 0 && terms[n-1].xorb == at.xorb && terms[n-1].chunks.End == at.index {
			terms[n-1].chunks.End++
			terms[n-1].size += p.size
			continue
		}
		terms = append(terms, term{at.xorb, xet.Range{First: at.index, End: at.index + 1}, p.size})
	}
	s.files[hash] = terms
	return hash
}

func (s *Server) serveStore(w http.ResponseWriter, r *http.Request, path string) {
	kind := Upload
	switch {
	case strings.Contains(path, "/reconstructions/"):
		kind = Reconstruction
	case strings.HasPrefix(path, "/xorb/"):
		kind = Xorb
	}
	index, fault := s.begin(r, kind, false)
	if early(w, fault) {
		return
	}
	switch {
	case kind == Reconstruction:
		s.serveReconstruction(w, r, path, fault, index)
	case kind == Xorb:
		s.serveXorb(w, r, path, fault, index)
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/v1/xorbs/default/"):
		s.takeXorb(w, r, strings.TrimPrefix(path, "/v1/xorbs/default/"))
	case r.Method == http.MethodPost && path == "/v1/shards":
		s.takeShard(w, r)
	default:
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(404)
	}
}

func (s *Server) serveReconstruction(w http.ResponseWriter, r *http.Request, path string, fault *Fault, index int) {
	v2 := strings.HasPrefix(path, "/v2/")
	hash, err := xet.ParseHash(path[strings.LastIndexByte(path, '/')+1:])
	s.mu.Lock()
	terms, ok := s.files[hash]
	s.mu.Unlock()
	if err != nil || !ok || v2 && s.NoV2 {
		w.WriteHeader(404)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer xet_") {
		w.WriteHeader(401)
		return
	}
	var size int64
	for _, t := range terms {
		size += t.size
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-")
	a, _ := strconv.ParseInt(first, 10, 64)
	b, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		b = size - 1
	}
	if a >= size {
		w.WriteHeader(416)
		return
	}
	skip, terms := s.clip(terms, a, min(b+1, size))
	data := s.describe(skip, terms, v2)
	w.Header().Set("Content-Type", "application/json")
	s.send(w, r, bytes.NewReader(data), xet.Range{First: 0, End: int64(len(data))}, int64(len(data)), 200, fault, index)
}

// clip cuts the terms to the chunks that hold bytes a to b, and returns how many bytes lie before a.
func (s *Server) clip(terms []term, a, b int64) (skip int64, out []term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := int64(0)
	for _, t := range terms {
		sizes := s.xorbs[t.xorb].sizes
		var cut *term
		for i := t.chunks.First; i < t.chunks.End; i++ {
			if at+sizes[i] > a && at < b {
				if cut == nil {
					if len(out) == 0 {
						skip = a - at
					}
					out = append(out, term{t.xorb, xet.Range{First: i, End: i}, 0})
					cut = &out[len(out)-1]
				}
				cut.chunks.End++
				cut.size += sizes[i]
			}
			at += sizes[i]
		}
	}
	return max(skip, 0), out
}

// describe writes the reconstruction. Terms of one xorb that touch or overlap share a range.
func (s *Server) describe(skip int64, terms []term, v2 bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	ranges := map[xet.Hash][]xet.Range{}
	var wireTerms []map[string]any
	for _, t := range terms {
		wireTerms = append(wireTerms, map[string]any{"hash": t.xorb.String(), "unpacked_length": t.size,
			"range": map[string]int64{"start": t.chunks.First, "end": t.chunks.End}})
		ranges[t.xorb] = join(ranges[t.xorb], t.chunks)
	}
	answer := map[string]any{"offset_into_first_range": skip, "terms": wireTerms}
	info := map[string][]map[string]any{}
	for name, list := range ranges {
		x := s.xorbs[name]
		var signed []string
		var v2Ranges []map[string]any
		for _, c := range list {
			start := int64(0)
			if c.First > 0 {
				start = x.ends[c.First-1]
			}
			end := x.ends[c.End-1] - 1
			signed = append(signed, fmt.Sprintf("%d-%d", start, end))
			v2Ranges = append(v2Ranges, map[string]any{"chunks": map[string]int64{"start": c.First, "end": c.End},
				"bytes": map[string]int64{"start": start, "end": end}})
		}
		address := func(signed string) string {
			return s.hub.URL + "/xorb/default/" + name.String() + "?X-Xet-Signed-Range=" + url.QueryEscape("bytes="+signed)
		}
		for i := range list {
			u := address(signed[i])
			if s.ManyRanges {
				u = address(strings.Join(signed, ","))
			}
			if v2 && !s.ManyRanges {
				info[name.String()] = append(info[name.String()], map[string]any{"url": u, "ranges": v2Ranges[i : i+1]})
			} else if v2 && i == 0 {
				info[name.String()] = append(info[name.String()], map[string]any{"url": u, "ranges": v2Ranges})
			} else if !v2 {
				info[name.String()] = append(info[name.String()], map[string]any{"url": u,
					"range": v2Ranges[i]["chunks"], "url_range": v2Ranges[i]["bytes"]})
			}
		}
	}
	if v2 {
		answer["xorbs"] = info
	} else {
		answer["fetch_info"] = info
	}
	data, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return data
}

// join adds a chunk range to a list of ranges that neither touch nor overlap.
func join(list []xet.Range, r xet.Range) []xet.Range {
	out := list[:0:0]
	for _, o := range list {
		if o.End < r.First || r.End < o.First {
			out = append(out, o)
		} else {
			r = xet.Range{First: min(r.First, o.First), End: max(r.End, o.End)}
		}
	}
	at := 0
	for at < len(out) && out[at].First < r.First {
		at++
	}
	return append(out[:at:at], append([]xet.Range{r}, out[at:]...)...)
}

func (s *Server) serveXorb(w http.ResponseWriter, r *http.Request, path string, fault *Fault, index int) {
	hash, err := xet.ParseHash(path[strings.LastIndexByte(path, '/')+1:])
	s.mu.Lock()
	x := s.xorbs[hash]
	s.mu.Unlock()
	asked := strings.TrimPrefix(r.Header.Get("Range"), "bytes=")
	signed := strings.Split(strings.TrimPrefix(r.URL.Query().Get("X-Xet-Signed-Range"), "bytes="), ",")
	allowed := false
	for _, one := range signed {
		allowed = allowed || one == asked
	}
	switch {
	case err != nil || x == nil:
		w.WriteHeader(404)
		return
	case r.Header.Get("Authorization") != "":
		w.WriteHeader(400) // signed addresses and tokens don't go together
		return
	case !allowed:
		w.WriteHeader(403)
		return
	}
	first, last, _ := strings.Cut(asked, "-")
	a, _ := strconv.ParseInt(first, 10, 64)
	b, _ := strconv.ParseInt(last, 10, 64)
	body := x.data[a : b+1]
	if s.ManyRanges && len(signed) > 1 && fault.Status == 0 && fault.CutAfter == 0 && r.URL.Query().Get("plain") == "" && index%2 == 0 {
		s.sendMultipart(w, body, a, b, len(x.data), index)
		return
	}
	s.send(w, r, bytes.NewReader(body), xet.Range{First: a, End: b + 1}, int64(len(x.data)), http.StatusPartialContent, fault, index)
}

func (s *Server) sendMultipart(w http.ResponseWriter, body []byte, a, b int64, total, index int) {
	var out bytes.Buffer
	m := multipart.NewWriter(&out)
	part, _ := m.CreatePart(textproto.MIMEHeader{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", a, b, total)}})
	part.Write(body)
	m.Close()
	w.Header().Set("Content-Type", "multipart/byteranges; boundary="+m.Boundary())
	w.WriteHeader(http.StatusPartialContent)
	n, _ := w.Write(out.Bytes())
	s.sent(index, int64(n))
}

// takeXorb keeps an uploaded xorb, if its name is its hash.
func (s *Server) takeXorb(w http.ResponseWriter, r *http.Request, name string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	hash, leaves, err := xet.ReadXorb(data)
	if err != nil || hash.String() != name {
		http.Error(w, fmt.Sprintf("xorb %s has the hash %s: %v", name, hash, err), 400)
		return
	}
	if err := s.AddXorb(data, leaves); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	writeJSON(w, map[string]bool{"was_inserted": true})
}

// AddXorb puts a xorb with these chunks into the store.
func (s *Server) AddXorb(data []byte, leaves []xet.Leaf) error {
	x := &xorb{data: data}
	var tree xet.Tree
	at := int64(0)
	for _, l := range leaves {
		if at+8 > int64(len(data)) {
			return fmt.Errorf("xorb ends early")
		}
		at += 8 + int64(binary.LittleEndian.Uint32(data[at:])>>8)
		x.ends = append(x.ends, at)
		x.sizes = append(x.sizes, int64(l.Size))
		tree.Add(l)
	}
	name := tree.Root()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xorbs[name] = x
	for i, l := range leaves {
		s.chunks[l.Hash] = place{name, int64(i)}
	}
	return nil
}

// takeShard learns from an upload's last step how its files are put together.
func (s *Server) takeShard(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := s.AddShard(data); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	writeJSON(w, map[string]int{"result": 1})
}

// AddShard reads the files of a shard (xet-core, mdb_shard): a header of 48 bytes, then blocks of 48-byte entries until
// one whose hash is all ones.
func (s *Server) AddShard(data []byte) error {
	const entry = 48
	files := map[xet.Hash][]term{}
	at := entry
	next := func() ([]byte, error) {
		if at+entry > len(data) {
			return nil, fmt.Errorf("shard ends at byte %d", len(data))
		}
		b := data[at : at+entry]
		at += entry
		return b, nil
	}
	for {
		b, err := next()
		if err != nil {
			return err
		}
		if bytes.Count(b[:32], []byte{0xFF}) == 32 {
			break
		}
		var name xet.Hash
		copy(name[:], b)
		flags, n := binary.LittleEndian.Uint32(b[32:]), int(binary.LittleEndian.Uint32(b[36:]))
		var terms []term
		for range n {
			b, err := next()
			if err != nil {
				return err
			}
			t := term{size: int64(binary.LittleEndian.Uint32(b[36:]))}
			copy(t.xorb[:], b)
			t.chunks = xet.Range{First: int64(binary.LittleEndian.Uint32(b[40:])), End: int64(binary.LittleEndian.Uint32(b[44:]))}
			terms = append(terms, t)
		}
		extra := 0
		if flags&0x8000_0000 != 0 {
			extra += n // range hashes
		}
		if flags&0x4000_0000 != 0 {
			extra++ // sha256
		}
		at += extra * entry
		files[name] = terms
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, terms := range files {
		s.files[name] = terms
	}
	return nil
}

// Stored reports whether the store knows how to put the file together.
func (s *Server) Stored(file xet.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.files[file]
	return ok
}

// Stored returns how many bytes a client receives that fetches the file once, where it would look first.
func (f *File) Stored() int64 {
	if !f.inXet {
		return f.Size
	}
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	ranges := map[xet.Hash][]xet.Range{}
	for _, t := range f.server.files[f.Xet] {
		ranges[t.xorb] = join(ranges[t.xorb], t.chunks)
	}
	n := int64(0)
	for name, list := range ranges {
		ends := f.server.xorbs[name].ends
		for _, r := range list {
			n += ends[r.End-1]
			if r.First > 0 {
				n -= ends[r.First-1]
			}
		}
	}
	return n
}
