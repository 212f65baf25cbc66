package platform

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Installed is a plugin in Gesso's cache folder.
type Installed struct {
	Platform string `json:"platform"`          // the device's name
	File     string `json:"file"`              // the library's name without .so; what Remove takes
	Package  string `json:"package,omitempty"` // name and version of the wheel that it came from
	License  string `json:"licence,omitempty"` // as the package states it; empty if it doesn't
	Plugin   string `json:"plugin,omitempty"`  // versions of PJRT and StableHLO
	Path     string `json:"path"`
	Size     int64  `json:"size"`
}

// folder is where plugins of a platform lie.
func (f *Finder) folder(platform string) string {
	return filepath.Join(f.CacheDir, "plugins", platform)
}

var errNoCache = errors.New("there is no cache folder; GESSO_CACHE can name one")

// Add copies a plugin into the cache folder: a shared library, or the one in a wheel as pip download brings it. platform
// is the device's name, or empty if the file's name tells. The plugin is tried in a child process before it is kept.
func (f *Finder) Add(ctx context.Context, file, platform string) (in Installed, err error) {
	if f.CacheDir == "" {
		return in, errNoCache
	}
	fail := func(err error) (Installed, error) { return Installed{}, fmt.Errorf("%s: %w", file, err) }
	if platform != "" && platform != plain(platform) || strings.HasPrefix(platform, ".") {
		return fail(fmt.Errorf("%q can't be a device's name", platform))
	}
	if err := os.MkdirAll(filepath.Join(f.CacheDir, "plugins"), 0o755); err != nil {
		return in, err
	}
	tmp, err := os.CreateTemp(filepath.Join(f.CacheDir, "plugins"), ".add-*.so")
	if err != nil {
		return in, err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()

	var texts []byte
	switch strings.ToLower(filepath.Ext(file)) {
	case ".whl":
		in, texts, err = unpack(file, tmp)
	case ".so":
		in.File = plain(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		err = copyInto(file, tmp)
	default:
		err = errors.New("expected a wheel (.whl) or a shared library (.so)")
	}
	if err == nil {
		err = exportsEntry(tmp.Name())
	}
	if err == nil {
		err = tmp.Close()
	}
	if err != nil {
		return fail(err)
	}
	if in.Platform = cmp.Or(platform, guess(in.File)); in.Platform == "" {
		return fail(errors.New("the name doesn't tell which device it is for; --name does"))
	}
	var env []string
	if f.hardware(in.Platform) != nil {
		env = withoutHardware(in.Platform)
		if env == nil {
			env = []string{} // nothing special, but no client
		}
	}
	info, err := f.Probe(ctx, in.Platform, tmp.Name(), env)
	if err != nil {
		return fail(errors.New(strings.ReplaceAll(err.Error(), tmp.Name(), filepath.Base(file))))
	}
	in.Plugin = info.Plugin
	in.Path = filepath.Join(f.folder(in.Platform), in.File+".so")
	if err := f.keep(tmp.Name(), &in, texts); err != nil {
		return fail(err)
	}
	if stat, err := os.Stat(in.Path); err == nil {
		f.remember(recordKey(in.Platform, in.Path), record{stat.Size(), stat.ModTime(), env == nil, info})
	}
	return in, nil
}

// keep moves the library to its place, with what is known of it beside it.
func (f *Finder) keep(tmp string, in *Installed, texts []byte) error {
	if err := os.MkdirAll(filepath.Dir(in.Path), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o644); err != nil {
		return err
	}
	info, err := os.Stat(tmp)
	if err != nil {
		return err
	}
	in.Size = info.Size()
	b, err := json.MarshalIndent(in, "", "\t")
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(in.Path, ".so")
	if err := os.WriteFile(base+".json", b, 0o644); err != nil {
		return err
	}
	if len(texts) > 0 {
		if err := os.WriteFile(base+".licence.txt", texts, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(tmp, in.Path)
}

// unpack finds the plugin in a wheel and writes it to dst. texts are the package's licences.
func unpack(file string, dst *os.File) (in Installed, texts []byte, err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return in, nil, err
	}
	defer z.Close()
	w, err := readWheel(&z.Reader)
	if err != nil {
		return in, nil, err
	}
	in = Installed{File: strings.ReplaceAll(w.name, "-", "_") + "-" + w.version, Package: w.name + " " + w.version, License: w.license}
	for _, l := range w.licenses {
		b, err := readPart(l)
		if err != nil {
			return in, nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		texts = fmt.Appendf(texts, "%s of %s\n\n%s\n", l.Name, in.Package, b)
	}
	slices.SortFunc(w.libraries, func(a, b *zip.File) int { return cmp.Compare(b.UncompressedSize64, a.UncompressedSize64) })
	for _, l := range w.libraries {
		if err := extract(l, dst); err != nil {
			return in, nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		if exportsEntry(dst.Name()) == nil {
			return in, texts, nil
		}
	}
	return in, nil, fmt.Errorf("%s holds no PJRT plugin: none of its %d libraries exports GetPjrtApi", in.Package, len(w.libraries))
}

func copyInto(file string, dst *os.File) error {
	src, err := os.Open(file)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			return path.Err
		}
		return err
	}
	defer src.Close()
	_, err = io.Copy(dst, src)
	return err
}

// guess tells the device from a plugin's name.
func guess(file string) string {
	file = strings.ToLower(file)
	for _, g := range []struct{ part, platform string }{{"tpu", "tpu"}, {"cuda", "cuda"}, {"cpu", "xla-cpu"}} {
		if strings.Contains(file, g.part) {
			return g.platform
		}
	}
	return ""
}

// Installed lists the plugins in the cache folder.
func (f *Finder) Installed() ([]Installed, error) {
	if f.CacheDir == "" {
		return nil, errNoCache
	}
	paths, err := filepath.Glob(filepath.Join(f.CacheDir, "plugins", "*", "*.so"))
	if err != nil {
		return nil, err
	}
	records := f.records()
	all := make([]Installed, 0, len(paths))
	for _, p := range paths {
		in := Installed{}
		if b, err := os.ReadFile(strings.TrimSuffix(p, ".so") + ".json"); err == nil {
			_ = json.Unmarshal(b, &in) // one that was put there by hand has none
		}
		in.Platform, in.File, in.Path = filepath.Base(filepath.Dir(p)), strings.TrimSuffix(filepath.Base(p), ".so"), p
		if info, err := os.Stat(p); err == nil {
			in.Size = info.Size()
		}
		if in.Plugin == "" {
			in.Plugin = records[recordKey(in.Platform, p)].Info.Plugin
		}
		all = append(all, in)
	}
	return all, nil
}

// Remove removes a plugin from the cache folder, by its file's name or by platform/file.
func (f *Finder) Remove(name string) (Installed, error) {
	all, err := f.Installed()
	if err != nil {
		return Installed{}, err
	}
	var found []Installed
	for _, in := range all {
		if name == in.File || name == in.Platform+"/"+in.File || name == in.Path {
			found = append(found, in)
		}
	}
	switch len(found) {
	case 0:
		return Installed{}, fmt.Errorf("no plugin %s in %s; gesso plugin ls shows their names", name, filepath.Join(f.CacheDir, "plugins"))
	case 1:
	default:
		return Installed{}, fmt.Errorf("%s is the name of %d plugins: say %s/%s", name, len(found), found[0].Platform, found[0].File)
	}
	in := found[0]
	if err := os.Remove(in.Path); err != nil {
		return in, err
	}
	base := strings.TrimSuffix(in.Path, ".so")
	for _, beside := range []string{base + ".json", base + ".licence.txt"} {
		if err := os.Remove(beside); err != nil && !os.IsNotExist(err) {
			return in, err
		}
	}
	return in, nil
}
