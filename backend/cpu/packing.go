package cpu

import "time"

// packing bounds the time that packing weights takes, because a machine may be slow to give memory: a virtual one whose
// host has to find each page takes seconds for a gigabyte. At first a client has what Options.Packing says; after that
// packing may take a thirtieth of the time that programs take, which is about what it gains. A weight whose turn hasn't come
// is used as it is stored, with the same results. It belongs to the stream's goroutine.
type packing struct {
	now    func() time.Time
	most   time.Duration // that can be saved up
	budget time.Duration // what is left
}

// packTime is enough for the five gigabytes of a model of 2.5 G parameters where memory is there.
const packTime = time.Second

const packShare = 30

// newPacking has time first to begin with, or packTime for 0.
func newPacking(first time.Duration) packing {
	if first == 0 {
		first = packTime
	}
	return packing{now: time.Now, most: first, budget: first}
}

// pack calls f unless the time for it is used up.
func (p *packing) pack(f func()) {
	if p.budget <= 0 {
		return
	}
	start := p.now()
	f()
	p.budget -= p.now().Sub(start)
}

// ran adds what a program that began at start earns; what nobody needs is not saved up.
func (p *packing) ran(start time.Time) {
	if p.budget < p.most {
		p.budget += p.now().Sub(start) / packShare
	}
}
