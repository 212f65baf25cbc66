package diskcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func key(name string) Key {
	return Key{Platform: "test", Version: "1", Topology: "one", Program: []byte(name)}
}

// get returns what Get loads or compiles; what it compiles is data.
func get(t *testing.T, c *Cache, k Key, data string) (got string, hit bool) {
	t.Helper()
	hit, err := c.Get(t.Context(), k, func(e *Entry) error { got = string(e.Data); return nil }, func() (*Entry, error) {
		got = data
		return &Entry{Name: "n", Data: []byte(data), Meta: []byte(`{"temporary":1}`)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, hit
}

func want(t *testing.T, c *Cache, k Key, data string, hit bool) {
	t.Helper()
	got, h := get(t, c, k, data)
	if got != data && !hit || h != hit {
		t.Fatalf("got %q, hit %v; expected %q, hit %v", got, h, data, hit)
	}
}

func TestGet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	want(t, New(dir, 0), key("x"), "program", false)
	if got, hit := get(t, New(dir, 0), key("x"), "another"); !hit || got != "program" {
		t.Errorf("the second process got %q, hit %v", got, hit)
	}
	e, ok := New(dir, 0).Lookup(key("x"))
	if !ok || e.Platform != "test" || e.Name != "n" || string(e.Meta) != `{"temporary":1}` || e.Created.IsZero() {
		t.Errorf("the entry is %+v", e)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v; expected the entry alone", left, err)
	}
}

// Every part of a key makes another entry, and parts can't run into each other.
func TestKey(t *testing.T) {
	seen := map[string]Key{}
	for _, k := range []Key{
		{}, {Platform: "a"}, {Version: "a"}, {Topology: "a"}, {Options: []byte("a")}, {Program: []byte("a")},
		{Platform: "ab", Version: "c"}, {Platform: "a", Version: "bc"},
	} {
		if other, ok := seen[k.String()]; ok {
			t.Errorf("%+v and %+v share a key", k, other)
		}
		seen[k.String()] = k
	}
}

// A file that isn't exactly what was written is a miss, and is replaced.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	c := New(dir, 0)
	want(t, c, key("x"), "program", false)
	path := c.path(key("x").String())
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"empty": {}, "longer": append(bytes.Clone(good), 0), "text": []byte("hello, this is no program, but is long enough to be the fixed part of one")}
	for i := range good {
		damaged[fmt.Sprintf("first %d bytes", i)] = good[:i]
		b := bytes.Clone(good)
		b[i] ^= 1
		damaged[fmt.Sprintf("byte %d changed", i)] = b
	}
	version := bytes.Clone(good)
	binary.LittleEndian.PutUint32(version[8:], 2)
	damaged["another format"] = version
	for name, b := range damaged {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Lookup(key("x")); ok {
			t.Errorf("%s: taken", name)
		}
		if _, err := c.List(); err != nil {
			t.Errorf("%s: List: %v", name, err)
		}
		want(t, c, key("x"), "program", false)
		if _, ok := c.Lookup(key("x")); !ok {
			t.Fatalf("%s: not replaced", name)
		}
	}
	// A good entry under another's name is not that one.
	if err := os.WriteFile(c.path(key("y").String()), good, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, c, key("y"), "other", false)
}

// What the plugin refuses to load is compiled again.
func TestRefused(t *testing.T) {
	c := New(t.TempDir(), 0)
	want(t, c, key("x"), "old", false)
	hit, err := c.Get(t.Context(), key("x"), func(*Entry) error { return errors.New("no") }, func() (*Entry, error) {
		return &Entry{Data: []byte("new")}, nil
	})
	if hit || err != nil {
		t.Fatalf("hit %v, %v", hit, err)
	}
	if got, hit := get(t, c, key("x"), ""); !hit || got != "new" {
		t.Errorf("got %q, hit %v", got, hit)
	}
}

// A compile that fails keeps nothing, and its error is the caller's.
func TestCompileFails(t *testing.T) {
	c := New(t.TempDir(), 0)
	bad := errors.New("bad program")
	load := func(*Entry) error { return nil }
	if _, err := c.Get(t.Context(), key("x"), load, func() (*Entry, error) { return nil, bad }); err != bad {
		t.Errorf("got %v", err)
	}
	if hit, err := c.Get(t.Context(), key("x"), load, func() (*Entry, error) { return nil, nil }); hit || err != nil {
		t.Errorf("nothing to keep: %v, %v", hit, err)
	}
	want(t, c, key("x"), "program", false)
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(filepath.Join(file, "folder"), 0)
	for range 2 {
		want(t, c, key("x"), "program", false)
	}
}

// Of goroutines that want one program one compiles it.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	compiles, hits := 0, 0
	for range 8 {
		wg.Go(func() {
			hit, err := New(dir, 0).Get(t.Context(), key("x"), func(*Entry) error { return nil }, func() (*Entry, error) {
				mu.Lock()
				compiles++
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				return &Entry{Data: []byte("p")}, nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if hit {
				hits++
			}
		})
	}
	wg.Wait()
	if compiles != 1 || hits != 7 {
		t.Errorf("%d compiles, %d hits", compiles, hits)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	c := New(t.TempDir(), 0)
	unlock, err := c.lock(t.Context(), key("x").String())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Get(ctx, key("x"), func(*Entry) error { return nil }, func() (*Entry, error) {
		t.Error("compiled beside the one who has the lock")
		return nil, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What has not been used for the longest time goes first, and what was just written stays.
func TestEviction(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(dir, 10_000)
	c.now = func() time.Time { now = now.Add(time.Minute); return now }
	data := strings.Repeat("x", 1500) // some 1,800 bytes with the header: five fit
	for i := range 5 {
		want(t, c, key(fmt.Sprint(i)), data, false)
		path := c.path(key(fmt.Sprint(i)).String())
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, hit := get(t, c, key("0"), ""); !hit { // used again
		t.Fatal("0 is gone too early")
	}
	want(t, c, key("5"), data, false)
	for name, there := range map[string]bool{"0": true, "1": false, "5": true} {
		if _, err := os.Stat(c.path(key(name).String())); (err == nil) != there {
			t.Errorf("%s: %v, expected there: %v", name, err, there)
		}
	}
	if list, _ := c.List(); len(list) != 5 && len(list) != 4 {
		t.Errorf("%d entries are left", len(list))
	}
	// What is larger than the whole cache is not kept.
	want(t, c, key("large"), strings.Repeat("x", 20_000), false)
	want(t, c, key("large"), strings.Repeat("x", 20_000), false)
}

func TestListAndRemove(t *testing.T) {
	c := New(t.TempDir(), 0)
	if list, err := New(filepath.Join(c.dir, "none"), 0).List(); err != nil || len(list) != 0 {
		t.Errorf("no folder: %v, %v", list, err)
	}
	want(t, c, key("x"), "program", false)
	want(t, c, key("y"), "program", false)
	list, err := c.List()
	if err != nil || len(list) != 2 || list[0].Size == 0 || list[0].Used.IsZero() || list[0].Data != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	for prefix, text := range map[string]string{"abc": "at least 4", strings.Repeat("0", 9): "no program with key"} {
		if _, err := c.Remove(prefix); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Remove(%s) says %v", prefix, err)
		}
	}
	if n, err := c.Remove(key("x").String()[:12]); err != nil || n < fixedSize {
		t.Errorf("removed %d bytes, %v", n, err)
	}
	if _, err := os.Stat(c.path(key("x").String())); err == nil {
		t.Error("x is still there")
	}
	if n, bytes, err := c.Clear(); n != 1 || bytes == 0 || err != nil {
		t.Errorf("Clear: %d, %d bytes, %v", n, bytes, err)
	}
	if n, _, err := c.Clear(); n != 0 || err != nil {
		t.Errorf("Clear of nothing: %d, %v", n, err)
	}
}

func FuzzParse(f *testing.F) {
	good, err := (&Entry{Key: "k", Name: "n", Data: []byte("data")}).bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:fixedSize])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parse(b)
		if err != nil {
			return
		}
		again, err := e.bytes()
		if err != nil {
			t.Fatal(err)
		}
		second, err := parse(again)
		if err != nil || second.Key != e.Key || !bytes.Equal(second.Data, e.Data) {
			t.Fatalf("written again: %v", err)
		}
	})
}

// A bundle is all there or an error says so; the ordinary cache does without.
func TestBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "x"), ""} {
		if _, err := Bundle(dir); err == nil {
			t.Errorf("%q is taken for a folder", dir)
		}
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	bundle, err := Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	want(t, bundle, key("x"), "program", false)
	want(t, bundle, key("x"), "program", true)
	for _, c := range []*Cache{bundle, New(dir, 0)} {
		_, err = c.Get(t.Context(), key("y"), nil, func() (*Entry, error) {
			return &Entry{Name: "fox", Data: []byte("program")}, os.RemoveAll(dir)
		})
		if c == bundle != errors.Is(err, ErrNotKept) || c == bundle && !strings.Contains(err.Error(), "fox") {
			t.Errorf("bundle %v: %v", c == bundle, err)
		}
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = bundle.Get(t.Context(), key("y"), nil, func() (*Entry, error) { t.Error("compiled in vain"); return nil, nil })
	if !errors.Is(err, ErrNotKept) {
		t.Error(err)
	}
}

// A bundle that was compiled elsewhere is taken over, but for what is damaged, which is an error.
func TestImport(t *testing.T) {
	bundle, c := New(t.TempDir(), 0), New(filepath.Join(t.TempDir(), "new"), 0)
	want(t, bundle, key("x"), "program", false)
	want(t, bundle, key("y"), "program", false)
	for name, content := range map[string]string{key("z").String() + suffix: "damaged", "README": "text"} {
		if err := os.WriteFile(filepath.Join(bundle.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := c.Import(bundle.dir); n != 2 || err == nil || !strings.Contains(err.Error(), "1 of 3 programs") || !strings.Contains(err.Error(), key("z").String()) {
		t.Errorf("%d programs, %v", n, err)
	}
	for _, name := range []string{"x", "y"} {
		if got, hit := get(t, c, key(name), ""); !hit || got != "program" {
			t.Errorf("%s: %q, hit %v", name, got, hit)
		}
	}
	if list, err := c.List(); err != nil || len(list) != 2 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	if _, err := c.Import(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no programs") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.Rename(bundle.path(key("z").String()), bundle.path(key("x").String())); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bundle.path(key("y").String()), bundle.path(key("x").String())); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Import(bundle.dir); n != 0 || err == nil {
		t.Errorf("a program under another's name: %d, %v", n, err)
	}
	if n, err := New(t.TempDir(), 8).Import(c.dir); n != 0 || !errors.Is(err, ErrNotKept) {
		t.Errorf("a cache that is too small: %d, %v", n, err)
	}
	if _, err := c.Import(filepath.Join(bundle.dir, "none")); err == nil {
		t.Error("a folder that isn't there was taken")
	}
}
