package capi

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// KeyValueStore lets the processes of one job find each other. Its methods may be called from several goroutines.
type KeyValueStore interface {
	// Get waits until the key is there, and returns an error that wraps ErrTimeout if it is not in time.
	Get(key string, timeout time.Duration) ([]byte, error)
	// TryGet returns an error that wraps ErrNotFound if the key is not there.
	TryGet(key string) ([]byte, error)
	Put(key string, value []byte) error
}

// What a store's errors wrap, so that the plugin knows what happened.
var (
	ErrTimeout  = errors.New("timed out")
	ErrNotFound = errors.New("no such key")
)

type storeEntry struct {
	p     *Plugin
	store KeyValueStore
}

// stores are the key-value stores of living clients; lent is memory that plugins read until they return it.
var (
	stores registry[*storeEntry]
	lent   = struct {
		sync.Mutex
		m map[uintptr]*loan
	}{m: map[uintptr]*loan{}}
)

type loan struct {
	pin runtime.Pinner
	mem []byte
}

// lend gives the plugin the address of a copy of v, which stays until the deleter gets it back.
func lend(v []byte) uintptr {
	l := &loan{mem: append(append([]byte(nil), v...), 0)}
	l.pin.Pin(&l.mem[0])
	at := uintptr(unsafe.Pointer(&l.mem[0]))
	lent.Lock()
	lent.m[at] = l
	lent.Unlock()
	return at
}

func giveBack(at uintptr) {
	lent.Lock()
	l := lent.m[at]
	delete(lent.m, at)
	lent.Unlock()
	if l != nil {
		l.pin.Unpin()
	}
}

type storeFunctions struct{ get, tryGet, put, deleter uintptr }

var storeCallbacks = sync.OnceValue(func() *storeFunctions {
	f := &storeFunctions{deleter: purego.NewCallback(giveBack)}
	f.get = purego.NewCallback(func(a *keyValueGetArgs) uintptr {
		v, failed := storeCall(a.user, a.makeError, func(s KeyValueStore) ([]byte, error) {
			return s.Get(text(a.key, a.keySize), time.Duration(a.timeoutMS)*time.Millisecond)
		})
		if failed == 0 {
			a.value, a.valueSize, a.deleter = lend(v), uintptr(len(v)), f.deleter
		}
		return failed
	})
	f.tryGet = purego.NewCallback(func(a *keyValueTryGetArgs) uintptr {
		v, failed := storeCall(a.user, a.makeError, func(s KeyValueStore) ([]byte, error) {
			return s.TryGet(text(a.key, a.keySize))
		})
		if failed == 0 {
			a.value, a.valueSize, a.deleter = lend(v), uintptr(len(v)), f.deleter
		}
		return failed
	})
	f.put = purego.NewCallback(func(a *keyValuePutArgs) uintptr {
		_, failed := storeCall(a.user, a.makeError, func(s KeyValueStore) ([]byte, error) {
			return nil, s.Put(text(a.key, a.keySize), copied[byte](a.value, a.valueSize))
		})
		return failed
	})
	return f
})

// storeCall runs fn on the store number id, and makes a PJRT_Error of its error with the function that the plugin gave.
func storeCall(id, makeError uintptr, fn func(KeyValueStore) ([]byte, error)) (value []byte, failed uintptr) {
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("key-value store: %v", r) // a panic must not unwind through C
			}
		}()
		e, ok := stores.get(id)
		if !ok {
			return errors.New("the client is closed")
		}
		value, err = fn(e.store)
		return err
	}()
	if err == nil {
		return value, 0
	}
	code := Internal
	switch {
	case errors.Is(err, ErrTimeout):
		code = DeadlineExceeded
	case errors.Is(err, ErrNotFound):
		code = NotFound
	}
	msg := append([]byte(err.Error()), 0)
	r, _, _ := purego.SyscallN(word(makeError), uintptr(code), uintptr(unsafe.Pointer(&msg[0])), uintptr(len(msg)-1))
	runtime.KeepAlive(msg)
	return nil, r
}
