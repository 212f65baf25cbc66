package engine

import (
	"maps"
	"sync"
	"time"
)

// Stats counts what the engine has done. "One compile per shape" is asserted on it, not believed.
type Stats struct {
	mu sync.Mutex
	s  Snapshot
}

// Snapshot is the state of the statistics at one moment.
type Snapshot struct {
	Compiles       int64            `json:"compiles"`         // programs compiled
	CompilesOf     map[string]int64 `json:"compiles_of"`      // the same by the program's name: a function, a block or an operation
	CompileSeconds float64          `json:"compile_seconds"`  // time spent in the backend's compiler
	MemoryHits     int64            `json:"memory_hits"`      // programs found in memory
	DiskHits       int64            `json:"disk_hits"`        // programs that another process had compiled
	Runs           int64            `json:"programs_run"`     // executions started
	UploadBytes    int64            `json:"uploaded_bytes"`   // host to device, without parameters used in place
	ReadBytes      int64            `json:"downloaded_bytes"` // device to host
}

// Sub returns what happened between the earlier snapshot o and s.
func (s Snapshot) Sub(o Snapshot) Snapshot {
	d := s
	d.Compiles -= o.Compiles
	d.CompileSeconds -= o.CompileSeconds
	d.MemoryHits -= o.MemoryHits
	d.DiskHits -= o.DiskHits
	d.Runs -= o.Runs
	d.UploadBytes -= o.UploadBytes
	d.ReadBytes -= o.ReadBytes
	d.CompilesOf = map[string]int64{}
	for name, n := range s.CompilesOf {
		if n -= o.CompilesOf[name]; n != 0 {
			d.CompilesOf[name] = n
		}
	}
	return d
}

func newStats() *Stats { return &Stats{s: Snapshot{CompilesOf: map[string]int64{}}} }

func (s *Stats) snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.s
	out.CompilesOf = maps.Clone(s.s.CompilesOf)
	return out
}

func (s *Stats) addCompile(name string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Compiles++
	s.s.CompilesOf[name]++
	s.s.CompileSeconds += d.Seconds()
}

func (s *Stats) addHit()           { s.mu.Lock(); s.s.MemoryHits++; s.mu.Unlock() }
func (s *Stats) addDiskHit()       { s.mu.Lock(); s.s.DiskHits++; s.mu.Unlock() }
func (s *Stats) addRun()           { s.mu.Lock(); s.s.Runs++; s.mu.Unlock() }
func (s *Stats) addUpload(n int64) { s.mu.Lock(); s.s.UploadBytes += n; s.mu.Unlock() }
func (s *Stats) addRead(n int64)   { s.mu.Lock(); s.s.ReadBytes += n; s.mu.Unlock() }
