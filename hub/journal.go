package hub

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gesso-go/gesso/hub/xet"
)

// A journal lies beside a partial file and says which of its bytes are there: a header of one line that names the
// content and the process at work, then one record for each write. It is what lets a download that was killed go on
// where it was, in whatever order its parts came.
//
// A record is 48 bytes: offset and length, little endian, and the Xet hash of these bytes, zero where they are no chunk.
const (
	journalHeader = 512
	journalRecord = 48
	journalMagic  = "gesso-partial 1"
)

type record struct {
	off, size int64
	hash      xet.Hash
}

func (r record) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.off))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.size))
	return append(b, r.hash[:]...)
}

func parseRecord(b []byte) record {
	r := record{off: int64(binary.LittleEndian.Uint64(b)), size: int64(binary.LittleEndian.Uint64(b[8:]))}
	copy(r.hash[:], b[16:])
	return r
}

// owner names a running process.
type owner struct {
	host  string
	pid   int    // 0: nobody is at work
	start string // when the process started, in the system's own unit; "-" where that isn't known
}

func self() owner {
	host, err := os.Hostname()
	if err != nil || host == "" || strings.ContainsAny(host, " \n") {
		host = "-"
	}
	return owner{host, os.Getpid(), processStart(os.Getpid())}
}

// alive reports whether another process may still be at work on the file. One on another machine always may.
func (o owner) alive() bool {
	me := self()
	switch {
	case o.pid == 0:
		return false
	case o.host != me.host:
		return true
	case o.pid == me.pid: // us, and then the file is claimed, or an earlier process with our number, as in containers
		return false
	}
	return processExists(o.pid) && (o.start == "-" || o.start == processStart(o.pid))
}

func formatHeader(etag string, size int64, o owner) []byte {
	b := make([]byte, journalHeader)
	for i := range b {
		b[i] = ' '
	}
	copy(b, fmt.Sprintf("%s %s %d %s %d %s", journalMagic, etag, size, o.host, o.pid, o.start))
	b[journalHeader-1] = '\n'
	return b
}

// readJournal reads a journal and calls fn for every sound record. It fails if the journal is for other content.
func readJournal(r io.Reader, etag string, size int64, fn func(record)) (owner, error) {
	head := make([]byte, journalHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return owner{}, fmt.Errorf("journal: %w", err)
	}
	var o owner
	var version, gotETag string
	var gotSize int64
	n, err := fmt.Sscanf(string(head), "gesso-partial %s %s %d %s %d %s", &version, &gotETag, &gotSize, &o.host, &o.pid, &o.start)
	if err != nil || n != 6 || version != "1" || gotETag != etag || gotSize != size {
		return o, fmt.Errorf("journal of other content")
	}
	b := make([]byte, journalRecord)
	for {
		if _, err := io.ReadFull(r, b); err != nil {
			return o, nil // a record that was cut off tells nothing
		}
		if rec := parseRecord(b); rec.off >= 0 && rec.size > 0 && rec.off <= size && rec.size <= size-rec.off {
			fn(rec)
		}
	}
}
