package xet

import (
	"encoding/json"
	"fmt"

	"github.com/gesso-go/gesso/internal/jsonwords"
)

// Reconstruction says how a file, or a range of it, is put together: the chunks of its terms one after another, less
// Skip bytes in front, cut to the asked length.
type Reconstruction struct {
	Skip  int64
	Terms []Term
	Parts []Part
}

// Term is a run of chunks of one xorb. Its chunks lie inside one part.
type Term struct {
	Xorb   Hash
	Chunks Range
	Size   int64 // uncompressed bytes
	Part   int   // index into Parts
}

// Part is a byte range of a xorb that can be fetched in one request.
type Part struct {
	Xorb   Hash
	Chunks Range
	Bytes  Range // of the stored xorb
	URL    string
}

// Range is half open: First is in it, End is not.
type Range struct{ First, End int64 }

// Len returns the number of elements in the range.
func (r Range) Len() int64 { return r.End - r.First }

// Limits of the format (xet-core): a xorb has at most 8192 chunks and 64 MiB; terms are counted in 32 bits.
const (
	maxXorbChunks = 8192
	maxXorbBytes  = 64 << 20
	maxTerms      = 1 << 20
)

// The two wire forms. Chunk ranges are half open, byte ranges inclusive.
type wireRange struct {
	Start *int64 `json:"start"`
	End   *int64 `json:"end"`
}

type wireReconstruction struct {
	Skip  int64 `json:"offset_into_first_range"`
	Terms []struct {
		Hash  string    `json:"hash"`
		Size  int64     `json:"unpacked_length"`
		Range wireRange `json:"range"`
	} `json:"terms"`
	FetchInfo map[string][]struct { // version 1
		Range    wireRange `json:"range"`
		URL      string    `json:"url"`
		URLRange wireRange `json:"url_range"`
	} `json:"fetch_info"`
	Xorbs map[string][]struct { // version 2
		URL    string `json:"url"`
		Ranges []struct {
			Chunks wireRange `json:"chunks"`
			Bytes  wireRange `json:"bytes"`
		} `json:"ranges"`
	} `json:"xorbs"`
}

// ParseReconstruction reads the answer of either version and checks that it is sound: ranges not empty and within the
// format's limits, every term inside a part of its xorb.
func ParseReconstruction(data []byte) (*Reconstruction, error) {
	var w wireReconstruction
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("reconstruction: %w", jsonwords.Explain(data, err))
	}
	if len(w.Terms) > maxTerms {
		return nil, fmt.Errorf("reconstruction has %d terms, at most %d are supported", len(w.Terms), maxTerms)
	}
	r := &Reconstruction{Skip: w.Skip}
	of := map[Hash][]int{} // parts by xorb
	add := func(name, url string, chunks, bytes wireRange) error {
		xorb, err := ParseHash(name)
		if err != nil {
			return err
		}
		p := Part{Xorb: xorb, URL: url}
		if p.Chunks, err = chunkRange(chunks); err != nil {
			return fmt.Errorf("xorb %s: %w", xorb, err)
		}
		if bytes.Start == nil || bytes.End == nil || *bytes.Start < 0 || *bytes.End < *bytes.Start || *bytes.End >= 2*maxXorbBytes {
			return fmt.Errorf("xorb %s: bad byte range", xorb)
		}
		p.Bytes = Range{*bytes.Start, *bytes.End + 1}
		of[xorb] = append(of[xorb], len(r.Parts))
		r.Parts = append(r.Parts, p)
		return nil
	}
	for name, infos := range w.FetchInfo {
		for _, f := range infos {
			if err := add(name, f.URL, f.Range, f.URLRange); err != nil {
				return nil, fmt.Errorf("reconstruction: %w", jsonwords.Explain(data, err))
			}
		}
	}
	for name, infos := range w.Xorbs {
		for _, f := range infos {
			for _, g := range f.Ranges {
				if err := add(name, f.URL, g.Chunks, g.Bytes); err != nil {
					return nil, fmt.Errorf("reconstruction: %w", jsonwords.Explain(data, err))
				}
			}
		}
	}
	var total int64
	for i, wt := range w.Terms {
		t, err := parseTerm(wt.Hash, wt.Size, wt.Range)
		if err != nil {
			return nil, fmt.Errorf("reconstruction: term %d: %w", i, err)
		}
		t.Part = -1
		for _, p := range of[t.Xorb] {
			if c := r.Parts[p].Chunks; c.First <= t.Chunks.First && t.Chunks.End <= c.End {
				t.Part = p
				break
			}
		}
		if t.Part < 0 {
			return nil, fmt.Errorf("reconstruction: term %d: no part holds chunks %d to %d of xorb %s",
				i, t.Chunks.First, t.Chunks.End, t.Xorb)
		}
		total += t.Size
		r.Terms = append(r.Terms, t)
	}
	if r.Skip < 0 || r.Skip > total || len(r.Terms) > 0 && r.Skip > r.Terms[0].Size {
		return nil, fmt.Errorf("reconstruction: offset %d lies beyond the first term", r.Skip)
	}
	return r, nil
}

func chunkRange(w wireRange) (Range, error) {
	if w.Start == nil || w.End == nil || *w.Start < 0 || *w.End <= *w.Start || *w.End > maxXorbChunks {
		return Range{}, fmt.Errorf("bad chunk range")
	}
	return Range{*w.Start, *w.End}, nil
}

func parseTerm(hash string, size int64, w wireRange) (t Term, err error) {
	if t.Xorb, err = ParseHash(hash); err != nil {
		return t, err
	}
	if t.Chunks, err = chunkRange(w); err != nil {
		return t, err
	}
	if size < 0 || size > t.Chunks.Len()*MaxChunk {
		return t, fmt.Errorf("%d bytes in %d chunks", size, t.Chunks.Len())
	}
	t.Size = size
	return t, nil
}

// Size returns the number of bytes that the terms hold, less Skip.
func (r *Reconstruction) Size() int64 {
	n := -r.Skip
	for _, t := range r.Terms {
		n += t.Size
	}
	return n
}
