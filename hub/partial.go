package hub

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gesso-go/gesso/hub/xet"
)

// A partial is a file in the making, with its journal beside it:
//
//	blobs/<etag>.gesso.incomplete           the bytes so far, with holes
//	blobs/<etag>.gesso.journal.incomplete   which bytes those are
//
// It also takes over what other clients leave as blobs/<etag>.incomplete, whose length says how much is there.
type partial struct {
	path    string
	etag    string
	size    int64 // of the whole, -1 if unknown
	file    *os.File
	journal *os.File
	onWrite func(total int64)

	mu      sync.Mutex
	have    spans
	got     int64 // positions in have
	dirty   spans // positions that were ever written, since the file was made
	extent  int64 // the file's length
	chunks  tiler
	epoch   int // counts the times that everything was thrown away
	last    record
	lastPos int64 // of the journal record that a sequential write extends, 0 if none
	end     int64 // of the journal
	resumed int64 // bytes that were there at the start
	grown   chan struct{}
}

func partialName(blob string) string { return blob + ".gesso.incomplete" }
func journalName(data string) string {
	return strings.TrimSuffix(data, ".incomplete") + ".journal.incomplete"
}

// openPartial opens or makes the partial file of a blob. The caller holds the blob's lock, where locks work; where they
// don't, a file that another live process is writing is left alone and a second one is made.
func openPartial(blob, etag string, size int64) (*partial, error) {
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		return nil, err
	}
	p := &partial{path: partialName(blob), etag: etag, size: size, grown: make(chan struct{}, 1)}
	if claim(p.path) {
		busy := p.load()
		if p.file != nil {
			return p, nil
		}
		err := fs.ErrExist
		if !busy {
			os.Remove(journalName(p.path)) // of a process that is gone, or of other content
			err = p.create(blob + ".incomplete")
		}
		switch {
		case err == nil:
			return p, nil
		case !errors.Is(err, fs.ErrExist):
			p.close()
			return nil, err
		}
		unclaim(p.path)
	}
	p.path = fmt.Sprintf("%s.gesso-%08x.incomplete", blob, rand.Uint32())
	claim(p.path)
	if err := p.create(""); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// load opens what an earlier run left. It reports whether another process is at work on it.
func (p *partial) load() (busy bool) {
	journal, err := os.OpenFile(journalName(p.path), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	var records int64
	file, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil || p.size < 0 {
		o, jerr := readJournal(journal, p.etag, p.size, func(record) {})
		journal.Close()
		if file != nil {
			file.Close()
		}
		return jerr == nil && o.alive()
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		journal.Close()
		return false
	}
	buf := make([]byte, xet.MaxChunk)
	o, err := readJournal(bufio.NewReaderSize(journal, 64<<10), p.etag, p.size, func(r record) {
		records++
		if r.off+r.size > info.Size() {
			return // the system lost it
		}
		if r.hash != (xet.Hash{}) {
			// Chunks can be checked one by one, so that damage costs a chunk and not the file.
			if r.size > xet.MaxChunk {
				return
			}
			if _, err := file.ReadAt(buf[:r.size], r.off); err != nil || xet.HashChunk(buf[:r.size]) != r.hash {
				return
			}
			p.chunks.add(r)
		}
		p.got += p.have.add(r.off, r.off+r.size)
	})
	busy = err == nil && o.alive()
	if err != nil || busy || info.Size() > p.size {
		p.have, p.got, p.chunks = nil, 0, tiler{}
		file.Close()
		journal.Close()
		return busy
	}
	p.file, p.journal = file, journal
	p.extent = info.Size()
	p.dirty.add(0, p.extent)
	p.end = journalHeader + records*journalRecord
	p.resumed = p.got
	p.journal.WriteAt(formatHeader(p.etag, p.size, self()), 0)
	return false
}

// create makes the files. It takes over what another client left as foreign, and starts an empty file otherwise. The
// journal comes first: whoever makes it is at work on the file.
func (p *partial) create(foreign string) (err error) {
	p.journal, err = os.OpenFile(journalName(p.path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = p.journal.WriteAt(formatHeader(p.etag, p.size, self()), 0); err != nil {
		return err
	}
	p.end = journalHeader
	flags := os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if p.adopt(foreign) {
		flags = os.O_RDWR
	}
	if p.file, err = os.OpenFile(p.path, flags, 0o644); err != nil || p.resumed == 0 {
		return err
	}
	p.extent = p.resumed
	p.dirty.add(0, p.extent)
	return p.note(record{off: 0, size: p.resumed})
}

// adopt takes over a partial file of another client. One that is too long is worthless.
func (p *partial) adopt(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if p.size < 0 || info.Size() > p.size || os.Rename(path, p.path) != nil {
		os.Remove(path)
		return false
	}
	p.got = p.have.add(0, info.Size())
	p.resumed = info.Size()
	return true
}

// note adds a record to the journal. One that goes on where the last one ended, without hashes, extends that one.
func (p *partial) note(r record) error {
	if p.lastPos > 0 && r.hash == (xet.Hash{}) && p.last.hash == (xet.Hash{}) && p.last.off+p.last.size == r.off {
		p.last.size += r.size
	} else {
		p.last, p.lastPos = r, p.end
		p.end += journalRecord
	}
	_, err := p.journal.WriteAt(p.last.append(nil), p.lastPos)
	return err
}

// WriteChunk stores a chunk of a Xet file.
func (p *partial) WriteChunk(off int64, chunk []byte, hash xet.Hash) error {
	return p.write(off, chunk, hash)
}

// write stores bytes and notes that they are there.
func (p *partial) write(off int64, b []byte, hash xet.Hash) error {
	if len(b) == 0 {
		return nil
	}
	end := off + int64(len(b))
	if off < 0 || p.size >= 0 && end > p.size {
		return fmt.Errorf("bytes %d to %d of a file of %d bytes", off, end, p.size)
	}
	p.mu.Lock()
	hole := isZero(b) && !p.dirty.overlaps(off, end)
	if !hole {
		p.dirty.add(off, end)
	}
	p.mu.Unlock()
	// Zeros where nothing was written need no space: the file keeps its holes.
	if !hole {
		if _, err := p.file.WriteAt(b, off); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if hole && end > p.extent {
		if err := p.file.Truncate(end); err != nil {
			return err
		}
	}
	p.extent = max(p.extent, end)
	if err := p.note(record{off, int64(len(b)), hash}); err != nil {
		return err
	}
	p.got += p.have.add(off, end)
	if hash != (xet.Hash{}) {
		p.chunks.add(record{off, int64(len(b)), hash})
	}
	if p.onWrite != nil {
		p.onWrite(p.got)
	}
	p.wake()
	return nil
}

func (p *partial) wake() {
	select {
	case p.grown <- struct{}{}:
	default:
	}
}

func isZero(b []byte) bool {
	for len(b) >= 8 {
		if b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7] != 0 {
			return false
		}
		b = b[8:]
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// Missing returns the ranges that are not there, in order. Of a file of unknown size it returns none.
func (p *partial) Missing() []xet.Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.missing(p.size)
}

func (p *partial) total() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// state returns how far the file is there from its start, and the epoch.
func (p *partial) state() (prefix int64, epoch int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.prefix(), p.epoch
}

// ReadAt reads back what is stored, from the partial file or from the blob that it became.
func (p *partial) ReadAt(b []byte, off int64) (int, error) {
	p.mu.Lock()
	path := p.path
	p.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(b, off)
}

// moved tells where the finished file lies now.
func (p *partial) moved(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = path
}

// reset throws away all bytes, because they may be those of other content.
func (p *partial) reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have, p.got, p.dirty, p.chunks = nil, 0, nil, tiler{}
	p.lastPos, p.end, p.extent = 0, journalHeader, 0
	p.epoch++
	if err := p.journal.Truncate(journalHeader); err != nil {
		return err
	}
	return p.file.Truncate(0)
}

// close leaves what is there for a later run.
func (p *partial) close() {
	p.closeFiles()
	unclaim(p.path)
}

func (p *partial) closeFiles() {
	if p.file != nil {
		p.file.Close()
	}
	if p.journal != nil {
		p.journal.WriteAt(formatHeader(p.etag, p.size, owner{host: "-", start: "-"}), 0)
		p.journal.Close()
	}
}

// discard closes and removes both files.
func (p *partial) discard() {
	p.closeFiles()
	os.Remove(p.path)
	os.Remove(journalName(p.path))
	unclaim(p.path)
}

// publish makes the partial file the blob. It must be whole and verified. Until the file has its new name its journal
// says that somebody is at work on it, so that nobody takes it over. After an error discard is to be called.
func (p *partial) publish(blob string) error {
	if p.extent < p.size {
		if err := p.file.Truncate(p.size); err != nil {
			return err
		}
	}
	p.file.Close() // Windows renames no open file
	path := p.path
	if err := rename(path, blob); err != nil {
		return err
	}
	p.moved(blob)
	p.journal.Close()
	os.Remove(journalName(path))
	unclaim(path)
	return nil
}

// open holds the partial files that this process is writing. It keeps two pulls of one process apart, and tells their
// files from those of an earlier process with the same number; like a file lock it belongs to the process.
var open sync.Map // path → struct{}

func claim(path string) bool {
	_, taken := open.LoadOrStore(path, struct{}{})
	return !taken
}

func unclaim(path string) { open.Delete(path) }

func claimed(path string) bool { _, ok := open.Load(path); return ok }

// staleAfter is when a partial file whose owner can't be known counts as left behind.
const staleAfter = 24 * time.Hour

// sweepPartials removes the repository's partial files that nobody will go on with: second ones (see openPartial) of dead
// processes, and those of blobs that are whole, as when another client completed what we began.
func (s *store) sweepPartials(ref Ref) {
	for _, name := range namesIn(filepath.Join(s.folder(ref), "blobs"), "", ".incomplete") {
		etag, second, ok := strings.Cut(filepath.Base(name), ".gesso")
		if !ok || strings.HasSuffix(name, ".journal.incomplete") {
			continue
		}
		if second != ".incomplete" || regular(s.blob(ref, etag), -1) {
			removeAbandoned(name)
		}
	}
}

// removeAbandoned removes a partial file and its journal, unless a process may be at work on it.
func removeAbandoned(name string) {
	alive := false
	if f, err := os.Open(journalName(name)); err == nil {
		head := make([]byte, journalHeader)
		io.ReadFull(f, head)
		f.Close()
		var skip string
		var o owner
		if n, _ := fmt.Sscanf(string(head), "gesso-partial %s %s %s %s %d %s", &skip, &skip, &skip, &o.host, &o.pid, &o.start); n == 6 {
			alive = claimed(name) || o.alive()
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		alive = true
	}
	if info, err := os.Stat(name); err == nil && (!alive || time.Since(info.ModTime()) > staleAfter) {
		os.Remove(name)
		os.Remove(journalName(name))
	}
}

// partialBytes returns how much of the entry an earlier run left.
func partialBytes(blob string, e Entry) (n int64) {
	if e.Size < 0 {
		return 0
	}
	if f, err := os.Open(journalName(partialName(blob))); err == nil {
		defer f.Close()
		var have spans
		readJournal(bufio.NewReaderSize(f, 64<<10), e.etag(), e.Size, func(r record) { n += have.add(r.off, r.off+r.size) })
		return n
	}
	if info, err := os.Lstat(blob + ".incomplete"); err == nil && info.Size() <= e.Size {
		return info.Size()
	}
	return 0
}
