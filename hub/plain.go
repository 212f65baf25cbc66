package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/gesso-go/gesso/hub/internal/wire"
	"github.com/gesso-go/gesso/hub/xet"
)

// flushAt is how many bytes a plain transfer collects before it writes them: what a kill may lose.
const flushAt = 64 << 10

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 4*flushAt); return &b }}

// fetchPlain brings what the partial file misses by ranges over HTTP. It goes on after every broken connection, as long
// as each brings something.
func (j *job) fetchPlain(ctx context.Context, p *partial) error {
	s := j.session
	best := p.total()
	for try := 0; ; try++ {
		done, err := j.fetchGap(ctx, p)
		if done {
			return nil
		}
		// A line that trickles must bring more than one that breaks to count as alive.
		var stall *wire.StallError
		enough := int64(1 << 10)
		if errors.As(err, &stall) {
			enough = flushAt
		}
		if now := p.total(); now-best >= enough || err == nil {
			best, try = max(best, now), 0
		}
		if err == nil {
			continue
		}
		if onDisk(err) {
			return err
		}
		if err := s.data.Pause(ctx, try, err); err != nil {
			ref := j.ref
			ref.Path = j.entry.Path
			return fmt.Errorf("%s: %w", j.entry.Path, s.explain(ref, err))
		}
	}
}

// fetchGap brings the first missing range, or all of a file of unknown size. It reports true when nothing is missing.
func (j *job) fetchGap(ctx context.Context, p *partial) (done bool, err error) {
	e := j.entry
	gap := xet.Range{First: 0, End: -1}
	if e.Size >= 0 {
		missing := p.Missing()
		if len(missing) == 0 {
			return true, nil
		}
		gap = missing[0]
	} else if p.total() > 0 {
		if err := p.reset(); err != nil { // what came before can't be told to be whole
			return false, err
		}
	}
	header := http.Header{}
	switch {
	case gap.End >= 0 && gap.End < e.Size:
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", gap.First, gap.End-1))
	case gap.First > 0:
		header.Set("Range", fmt.Sprintf("bytes=%d-", gap.First))
	}
	resp, err := j.session.data.Do(ctx, wire.Request{URL: j.session.fileURL(j.ref, j.commit, e.Path), Header: header})
	if err != nil {
		return false, j.refused(err, gap, p)
	}
	defer resp.Body.Close()
	if err := j.sameContent(resp, p); err != nil {
		return false, err
	}
	var body io.Reader = resp.Body
	switch resp.StatusCode {
	case http.StatusOK:
		if body, err = wire.Plain(resp.Response); err != nil {
			return false, err
		}
		if gap.First > 0 { // the server doesn't know ranges: from the start
			if err := p.reset(); err != nil {
				return false, err
			}
		}
		gap.First, gap.End = 0, e.Size
	case http.StatusPartialContent:
		r, total, err := xet.ParseContentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return false, &wire.Broken{Err: err}
		}
		if len(header) == 0 || r.First != gap.First || r.End > gap.End || total >= 0 && total != e.Size || resp.Header.Get("Content-Encoding") != "" {
			return false, &wire.Broken{Err: fmt.Errorf("%s sent the range %q, asked was %q of %d bytes", resp.Request.URL.Host,
				resp.Header.Get("Content-Range"), header.Get("Range"), e.Size)}
		}
		gap.End = r.End
	default:
		return false, &wire.Broken{Err: fmt.Errorf("%s answered %s", resp.Request.URL.Host, resp.Status)}
	}
	if err := j.copy(ctx, p, body, gap); err != nil {
		return false, err
	}
	return e.Size < 0 || len(p.Missing()) == 0, nil
}

// copy writes body to the gap, whose end is -1 if unknown.
func (j *job) copy(ctx context.Context, p *partial, body io.Reader, gap xet.Range) error {
	pooled := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(pooled)
	buf := *pooled
	at, have := gap.First, 0
	flush := func() error {
		err := p.write(at, buf[:have], xet.Hash{})
		at += int64(have)
		have = 0
		return err
	}
	for gap.End < 0 || at+int64(have) < gap.End {
		if ctx.Err() != nil { // the connection notices later
			return errors.Join(context.Cause(ctx), flush())
		}
		room := int64(len(buf) - have)
		if gap.End >= 0 {
			room = min(room, gap.End-at-int64(have))
		}
		n, err := body.Read(buf[have : have+int(room)])
		have += n
		if have >= flushAt || err != nil {
			if err := flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			if gap.End >= 0 && at < gap.End {
				return &wire.Broken{Err: fmt.Errorf("the connection was closed %d bytes before the end", gap.End-at)}
			}
			return nil
		}
		if err != nil {
			if !wire.Transient(err) { // damaged compression, for instance
				err = &wire.Broken{Err: err}
			}
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if gap.End != j.entry.Size {
		return nil
	}
	// A server that has more has something else.
	if n, _ := io.ReadFull(body, buf[:1]); n > 0 {
		if err := p.reset(); err != nil {
			return err
		}
		return &wire.Broken{Err: fmt.Errorf("the server sends more than the file's %d bytes", j.entry.Size)}
	}
	return nil
}

// refused handles an error answer. It returns a wire.Broken where a fresh start may help.
func (j *job) refused(err error, gap xet.Range, p *partial) error {
	var status *wire.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch {
	case status.Status == http.StatusRequestedRangeNotSatisfiable && gap.First > 0:
		// Never the end of the file: what we have is not what they have.
		if err := p.reset(); err != nil {
			return err
		}
		return &wire.Broken{Err: fmt.Errorf("%s has nothing at byte %d: starting again", status.Host, gap.First)}
	case !status.OnHub && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized || status.Status == http.StatusBadRequest):
		text := fmt.Sprintf("%s refuses the signed address: %v", status.Host, status)
		if skew := status.Skew.Abs(); skew > maxSkew {
			text += fmt.Sprintf("; this machine's clock is %v off the server's, set it right", skew.Round(1e9))
		}
		return &wire.Broken{Err: errors.New(text)}
	}
	return err
}

// maxSkew is how far the local clock may be off before it is named as a reason for refused signatures.
const maxSkew = 120e9

// sameContent compares what the answer says about the content's identity with the listing, and with earlier answers.
func (j *job) sameContent(resp *wire.Response, p *partial) error {
	tag := cleanETag(resp.Hub.Get("X-Linked-Etag"))
	onHub := wire.Origin(resp.Request.URL) == wire.Origin(j.session.endpoint)
	if tag == "" && onHub {
		tag = cleanETag(resp.Header.Get("ETag"))
	}
	want := j.entry.etag()
	isHash := sha256Name.MatchString(tag) || commitName.MatchString(tag)
	if isHash && len(tag) == len(want) && tag != want && tag != j.entry.Xet {
		if err := p.reset(); err != nil {
			return err
		}
		return &changedError{fmt.Sprintf("the Hub now has other content (etag %.12s…, listed was %.12s…)", tag, want)}
	}
	if onHub {
		return nil
	}
	// The content server's own ETag means nothing to us, but it must stay the same from one range to the next. Twice,
	// it is a server that makes them up.
	tag = resp.Header.Get("ETag")
	if j.serverTag != "" && tag != "" && tag != j.serverTag && !j.tagChanged && p.total() > 0 {
		j.tagChanged = true
		j.serverTag = tag
		if err := p.reset(); err != nil {
			return err
		}
		return &wire.Broken{Err: errors.New("the content changed between two parts: starting again")}
	}
	if tag != "" {
		j.serverTag = tag
	}
	return nil
}

// changedError is worth another try, for a server that took the wrong file, and is ErrChanged in the end.
type changedError struct{ msg string }

func (e *changedError) Error() string { return e.msg }
func (e *changedError) Unwrap() []error {
	return []error{ErrChanged, &wire.Broken{Err: errors.New(e.msg)}}
}
