package capi

import (
	"errors"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

type mapStore struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (s *mapStore) Get(key string, timeout time.Duration) ([]byte, error) {
	if v, err := s.TryGet(key); err == nil {
		return v, nil
	}
	return nil, ErrTimeout
}

func (s *mapStore) TryGet(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "panic" {
		panic("no")
	}
	if v, ok := s.m[key]; ok {
		return v, nil
	}
	return nil, ErrNotFound
}

func (s *mapStore) Put(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) == 0 {
		return errors.New("nothing to put")
	}
	s.m[key] = value
	return nil
}

// No plugin for one process calls the store, so the test plays the plugin: it calls the C functions.
func TestKeyValueStore(t *testing.T) {
	id := stores.add(&storeEntry{store: &mapStore{m: map[string][]byte{}}})
	defer stores.take(id)
	f := storeCallbacks()
	var gotCode int
	var gotMessage string
	makeError := purego.NewCallback(func(code, message, n uintptr) uintptr {
		gotCode, gotMessage = int(code), text(message, n)
		return 42
	})
	key, value := []byte("key"), []byte("value")
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	errFn := uintptr(unsafe.Pointer(&makeError))
	c := func(f uintptr, a unsafe.Pointer) uintptr {
		r, _, _ := purego.SyscallN(f, uintptr(a))
		return r
	}
	try := &keyValueTryGetArgs{key: at(key), keySize: 3, user: id, makeError: errFn}
	if r := c(f.tryGet, unsafe.Pointer(try)); r != 42 || gotCode != int(NotFound) {
		t.Errorf("an absent key: %d, code %d %q", r, gotCode, gotMessage)
	}
	get := &keyValueGetArgs{key: at(key), keySize: 3, timeoutMS: 5, user: id, makeError: errFn}
	if r := c(f.get, unsafe.Pointer(get)); r != 42 || gotCode != int(DeadlineExceeded) {
		t.Errorf("an absent key: %d, code %d %q", r, gotCode, gotMessage)
	}
	put := &keyValuePutArgs{key: at(key), keySize: 3, value: at(value), valueSize: 5, user: id, makeError: errFn}
	if r := c(f.put, unsafe.Pointer(put)); r != 0 {
		t.Fatalf("put: code %d %q", gotCode, gotMessage)
	}
	if r := c(f.get, unsafe.Pointer(get)); r != 0 || text(get.value, get.valueSize) != "value" {
		t.Errorf("get: %d, %q", r, text(get.value, get.valueSize))
	}
	if r := c(f.tryGet, unsafe.Pointer(try)); r != 0 || text(try.value, try.valueSize) != "value" {
		t.Errorf("tryGet: %d, %q", r, text(try.value, try.valueSize))
	}
	purego.SyscallN(get.deleter, get.value)
	purego.SyscallN(try.deleter, try.value)
	if len(lent.m) != 0 {
		t.Errorf("%d values are still lent", len(lent.m))
	}
	put.valueSize = 0
	if r := c(f.put, unsafe.Pointer(put)); r != 42 || gotCode != int(Internal) || gotMessage != "nothing to put" {
		t.Errorf("a store's error: %d, code %d %q", r, gotCode, gotMessage)
	}
	bad := []byte("panic")
	try.key, try.keySize = at(bad), 5
	if r := c(f.tryGet, unsafe.Pointer(try)); r != 42 || gotCode != int(Internal) {
		t.Errorf("a store that panics: %d, code %d %q", r, gotCode, gotMessage)
	}
	try.user = id + 1000
	if r := c(f.tryGet, unsafe.Pointer(try)); r != 42 {
		t.Errorf("no store: %d", r)
	}
}
