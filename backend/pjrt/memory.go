package pjrt

import (
	"runtime"
	"sync"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/tensor"
)

var elementTypes = map[tensor.DType]capi.ElementType{
	tensor.F32: capi.F32, tensor.BF16: capi.BF16, tensor.F16: capi.F16, tensor.F64: capi.F64, tensor.I32: capi.S32,
	tensor.I64: capi.S64, tensor.U8: capi.U8, tensor.I8: capi.S8, tensor.Bool: capi.Pred,
}

func dims(s tensor.Shape) []int64 {
	d := make([]int64, len(s))
	for i, n := range s {
		d[i] = int64(n)
	}
	return d
}

// growthStep is how much live bytes may grow before a collection is asked for.
const growthStep = 64 << 20

func (m *meter) init() { m.collect = runtime.GC }

// grow counts n more bytes, after a collection if one is due.
func (m *meter) grow(n int64) {
	live := m.live.Load()
	m.mu.Lock()
	m.floor = min(m.floor, live)
	due := live > m.floor && live+n > m.floor+max(growthStep, m.floor/2)
	if due {
		m.floor = live
	}
	m.mu.Unlock()
	if due {
		m.collect()
	}
	m.live.Add(n)
}

func (m *meter) shrink(n int64) {
	if n == 0 {
		return
	}
	live := m.live.Add(-n)
	m.mu.Lock()
	m.floor = min(m.floor, live)
	m.mu.Unlock()
}

// collect gives back the memory of buffers that nobody reaches any more, as far as the collector's cleanups have run.
func (c *Client) collect() {
	runtime.GC()
	c.janitor.flush()
}

// list holds the living values of a client.
type list struct{ head *value }

func (l *list) add(v *value) {
	if v.next = l.head; v.next != nil {
		v.next.prev = v
	}
	l.head = v
	v.listed = true
}

// remove reports whether v was in the list.
func (l *list) remove(v *value) bool {
	if !v.listed {
		return false
	}
	v.listed = false
	if v.next != nil {
		v.next.prev = v.prev
	}
	if v.prev != nil {
		v.prev.next = v.next
	} else {
		l.head = v.next
	}
	v.prev, v.next = nil, nil
	return true
}

// drain empties the list.
func (l *list) drain() []*value {
	var vs []*value
	for l.head != nil {
		vs = append(vs, l.head)
		l.remove(l.head)
	}
	return vs
}

// janitor closes buffers that the collector found: its cleanups must not call into a plugin, which may take its time.
type janitor struct {
	mu      sync.Mutex
	wake    *sync.Cond
	queue   []*capi.Buffer
	busy    bool
	stopped bool
	ended   chan struct{}
}

func newJanitor() *janitor {
	j := &janitor{ended: make(chan struct{})}
	j.wake = sync.NewCond(&j.mu)
	go j.loop()
	return j
}

func (j *janitor) push(b *capi.Buffer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, b)
	j.wake.Broadcast()
}

func (j *janitor) loop() {
	defer close(j.ended)
	var batch []*capi.Buffer
	j.mu.Lock()
	for {
		for len(j.queue) == 0 && !j.stopped {
			j.wake.Wait()
		}
		if len(j.queue) == 0 {
			j.mu.Unlock()
			return
		}
		batch, j.queue = j.queue, batch[:0]
		j.busy = true
		j.mu.Unlock()
		for i, b := range batch {
			b.Close()
			batch[i] = nil
		}
		j.mu.Lock()
		j.busy = false
		j.wake.Broadcast()
	}
}

// flush waits until what was pushed so far is closed.
func (j *janitor) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 || j.busy {
		j.wake.Wait()
	}
}

func (j *janitor) stop() {
	j.mu.Lock()
	j.stopped = true
	j.wake.Broadcast()
	j.mu.Unlock()
	<-j.ended
}
