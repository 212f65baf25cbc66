package xet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/hub/internal/wire"
)

// A use is a run of a part's chunks that lies at bytes at to end of the file. While chunks come, at moves on.
type use struct {
	chunks  Range
	at, end int64
}

// expired means that a signed address was refused; the next reconstruction query brings a fresh one.
type expired struct{ err *wire.StatusError }

func (e *expired) Error() string {
	s := "signed address refused: " + e.err.Error()
	if skew := e.err.Skew.Abs(); skew > maxSkew {
		s += fmt.Sprintf("; this machine's clock is %v off the server's, set it right", skew.Round(1e9))
	}
	return s
}

// Unwrap makes it an error that another try may help against.
func (e *expired) Unwrap() error { return &wire.Broken{Err: errors.New(e.err.Error())} }

// maxSkew is how far the local clock may be off before it is named as a reason for refused signatures.
const maxSkew = 120e9

// fetch brings one part and stores its chunks wherever the file uses them.
func (c *Client) fetch(ctx context.Context, p Part, uses []use, sink Sink) error {
	if c.fromCache(p, uses, sink) {
		return nil
	}
	resp, err := c.wire.Do(ctx, wire.Request{
		URL: p.URL,
		Header: http.Header{
			"Range":            {fmt.Sprintf("bytes=%d-%d", p.Bytes.First, p.Bytes.End-1)},
			"X-Xet-Session-Id": {c.session},
		},
	})
	var status *wire.StatusError
	if errors.As(err, &status) && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized) {
		return &expired{status}
	}
	if err != nil {
		return fmt.Errorf("xorb %s: %w", p.Xorb, err)
	}
	defer resp.Body.Close()
	body, err := rangeBody(resp.Response, p.Bytes)
	if err == nil {
		err = c.decode(body, p, uses, sink)
	}
	if err != nil {
		return fmt.Errorf("xorb %s bytes %d to %d: %w", p.Xorb, p.Bytes.First, p.Bytes.End, err)
	}
	return nil
}

// rangeBody returns a reader of exactly the bytes that were asked for.
func rangeBody(resp *http.Response, want Range) (io.Reader, error) {
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &wire.Broken{Err: fmt.Errorf("the answer has the encoding %.20q", e)}
	}
	switch resp.StatusCode {
	case http.StatusPartialContent:
		kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind == "multipart/byteranges" {
			return findPart(multipart.NewReader(resp.Body, params["boundary"]), want)
		}
		if err := checkRange(resp.Header.Get("Content-Range"), want); err != nil {
			return nil, err
		}
	case http.StatusOK: // the whole xorb, from a server that doesn't know ranges
		if _, err := io.CopyN(io.Discard, resp.Body, want.First); err != nil {
			return nil, &wire.Broken{Err: err}
		}
	default:
		return nil, &wire.Broken{Err: fmt.Errorf("the answer is %s, expected 206", resp.Status)}
	}
	return io.LimitReader(resp.Body, want.Len()), nil
}

func findPart(m *multipart.Reader, want Range) (io.Reader, error) {
	for {
		part, err := m.NextRawPart()
		if err != nil {
			return nil, &wire.Broken{Err: fmt.Errorf("no part of the answer holds the asked range: %w", err)}
		}
		if checkRange(part.Header.Get("Content-Range"), want) == nil {
			return io.LimitReader(part, want.Len()), nil
		}
	}
}

// checkRange compares a Content-Range with what was asked for. An absent header passes: the decoded chunks tell.
func checkRange(header string, want Range) error {
	if header == "" {
		return nil
	}
	got, _, err := ParseContentRange(header)
	if err != nil || got != want {
		return &wire.Broken{Err: fmt.Errorf("the answer has the range %.60q, expected %d-%d", header, want.First, want.End-1)}
	}
	return nil
}

// ParseContentRange reads "bytes 0-9/100". The total is -1 where the header says "*".
func ParseContentRange(header string) (r Range, total int64, err error) {
	bad := fmt.Errorf("bad Content-Range %.60q", header)
	s, ok := strings.CutPrefix(header, "bytes ")
	span, size, ok2 := strings.Cut(s, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return r, 0, bad
	}
	a, err1 := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	if err1 != nil || err2 != nil || err3 != nil || a < 0 || b < a || b == 1<<63-1 || total >= 0 && b >= total {
		return r, 0, bad
	}
	return Range{a, b + 1}, total, nil
}

// decode stores the part's chunks as they come. Nothing but whole chunks that decode is ever stored.
func (c *Client) decode(body io.Reader, p Part, uses []use, sink Sink) error {
	counted := &counter{r: body}
	r := c.readers.Get().(*ChunkReader)
	defer c.readers.Put(r)
	r.Reset(counted)
	for i := p.Chunks.First; i < p.Chunks.End; i++ {
		chunk, err := r.Next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return damaged(fmt.Errorf("chunk %d: %w", i, err))
		}
		if err := c.store(p, i, chunk, uses, sink); err != nil {
			return err
		}
	}
	if _, err := r.Next(); err != io.EOF {
		return damaged(errors.New("more chunks than announced"))
	}
	if counted.n != p.Bytes.Len() {
		return damaged(fmt.Errorf("%d bytes came, expected %d", counted.n, p.Bytes.Len()))
	}
	for _, u := range uses {
		if u.at != u.end {
			return damaged(fmt.Errorf("chunks %d to %d hold %d bytes less than announced", u.chunks.First, u.chunks.End, u.end-u.at))
		}
	}
	return nil
}

// damaged marks what a decoder found; errors of the connection keep their own kind.
func damaged(err error) error {
	var status *wire.NetError
	var stall *wire.StallError
	if errors.As(err, &status) || errors.As(err, &stall) || errors.Is(err, context.Canceled) {
		return err
	}
	return &wire.Broken{Err: err}
}

// store hands chunk i to every place where the file uses it.
func (c *Client) store(p Part, i int64, chunk []byte, uses []use, sink Sink) error {
	hash, hashed := Hash{}, false
	for k := range uses {
		u := &uses[k]
		if i < u.chunks.First || i >= u.chunks.End {
			continue
		}
		if u.at+int64(len(chunk)) > u.end {
			return damaged(fmt.Errorf("chunks %d to %d hold more bytes than announced", u.chunks.First, u.chunks.End))
		}
		if !hashed {
			hash, hashed = HashChunk(chunk), true
			c.cache.add(p.Xorb, i, location{sink, u.at, len(chunk), hash})
		}
		if err := sink.WriteChunk(u.at, chunk, hash); err != nil {
			return err
		}
		u.at += int64(len(chunk))
	}
	return nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
