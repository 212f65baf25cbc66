package platform

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// record is what a probe learnt of a file.
type record struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mod_time"`
	Client  bool      `json:"client"` // a client was started too
	Info    Info      `json:"info"`
}

// examine returns what is known of a plugin, after a probe if this file has not passed one. env, if not nil, is the
// environment for looking at it without hardware.
func (f *Finder) examine(ctx context.Context, name, path string, env []string) (Info, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	key := recordKey(name, path)
	r, ok := f.records()[key]
	if ok && r.Size == stat.Size() && r.ModTime.Equal(stat.ModTime()) && (r.Client || env != nil) {
		return r.Info, nil
	}
	info, err := f.Probe(ctx, name, path, env)
	if err == nil {
		f.remember(key, record{stat.Size(), stat.ModTime(), env == nil, info})
	}
	return info, err
}

// recordKey is a plugin's key among the records.
func recordKey(platform, path string) string { return platform + " " + path }

func (f *Finder) recordFile() string { return filepath.Join(f.CacheDir, "plugins", "probed.json") }

// records reads the file; a damaged one is as good as none.
func (f *Finder) records() map[string]record {
	all := map[string]record{}
	if f.CacheDir == "" {
		return all
	}
	b, err := os.ReadFile(f.recordFile())
	if err != nil || json.Unmarshal(b, &all) != nil || all == nil {
		return map[string]record{}
	}
	return all
}

// remember adds to the file. Where it can't be written, plugins are probed each time.
func (f *Finder) remember(key string, r record) {
	if f.CacheDir == "" {
		return
	}
	all := f.records()
	for k := range all { // forget files that are gone
		if _, path, ok := strings.Cut(k, " "); !ok {
			delete(all, k)
		} else if _, err := os.Stat(path); err != nil {
			delete(all, k)
		}
	}
	all[key] = r
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return
	}
	dir := filepath.Dir(f.recordFile())
	if os.MkdirAll(dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(dir, ".probed-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(b)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil || os.Rename(tmp.Name(), f.recordFile()) != nil {
		os.Remove(tmp.Name())
	}
}
