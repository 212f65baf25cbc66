package par

import "sync"

// Kept holds what kernels use again, such as scratch memory that has grown to its size. Unlike a sync.Pool's it survives
// collections, which come several times a step where handles keep dying: a loop of steps allocates in the first one
// only. There are as many as were ever in use at once.
type Kept[T any] struct {
	New  func() *T // nil: new(T)
	mu   sync.Mutex
	free []*T
}

// Get returns one that nobody else uses, with whatever it holds.
func (k *Kept[T]) Get() *T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.free) - 1; n >= 0 {
		v := k.free[n]
		k.free[n] = nil
		k.free = k.free[:n]
		return v
	}
	if k.New != nil {
		return k.New()
	}
	return new(T)
}

// Put gives one back.
func (k *Kept[T]) Put(v *T) {
	k.mu.Lock()
	k.free = append(k.free, v)
	k.mu.Unlock()
}
