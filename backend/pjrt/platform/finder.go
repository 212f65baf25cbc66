package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
)

// Finder finds plugins. Its fields are what it sees of the machine; Default fills them in.
type Finder struct {
	Environ    []string // KEY=value
	Setenv     func(key, value string) error
	Root       string // of the file system
	CacheDir   string // Gesso's; "" for none
	CacheLimit int64  // bytes of compiled programs; 0 means diskcache.DefaultLimit
	Probe      func(ctx context.Context, name, path string, env []string) (Info, error)
}

// Default looks at this machine. GESSO_CACHE is Gesso's cache folder, and GESSO_CACHE_LIMIT the size to which compiled
// programs may grow in it, in bytes, such as 20e9.
func Default() *Finder {
	f := &Finder{Environ: os.Environ(), Setenv: os.Setenv, Root: "/", Probe: probe}
	if dir := f.getenv("GESSO_CACHE"); dir != "" {
		f.CacheDir = dir
	} else if dir, err := os.UserCacheDir(); err == nil {
		f.CacheDir = filepath.Join(dir, "gesso")
	}
	f.CacheLimit, _ = CacheLimit(f.getenv("GESSO_CACHE_LIMIT"))
	return f
}

// CacheLimit reads what GESSO_CACHE_LIMIT holds; 0 where it is empty.
func CacheLimit(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 1 && n < 1<<62) {
		return 0, fmt.Errorf("GESSO_CACHE_LIMIT is %q, expected a number of bytes, such as 20e9", text)
	}
	return int64(n), nil
}

// ErrNoPlugin is wrapped when there is no plugin for a device, ErrNoDevice when there is no hardware for it.
var (
	ErrNoPlugin = errors.New("no plugin")
	ErrNoDevice = errors.New("no such device on this machine")
)

// variable is the prefix of the environment variables that name plugins.
const variable = "GESSO_PLUGIN_"

func (f *Finder) getenv(key string) string {
	for _, kv := range slices.Backward(f.Environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// Names lists the platforms: those that are always known, and those of the environment and of the cache folder.
func (f *Finder) Names() []string {
	names := []string{"xla-cpu", "tpu", "cuda"}
	if f.CacheDir != "" {
		added, _ := filepath.Glob(filepath.Join(f.CacheDir, "plugins", "*", "*.so"))
		for _, path := range added {
			if name := filepath.Base(filepath.Dir(path)); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, kv := range f.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" && strings.HasPrefix(k, variable) {
			name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(k, variable)), "_", "-")
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// ParseDevice splits "tpu:3" into name and ordinal; without an ordinal it is 0.
func ParseDevice(device string) (name string, ordinal int, err error) {
	name, number, found := strings.Cut(device, ":")
	if !found {
		return name, 0, nil
	}
	ordinal, err = strconv.Atoi(number)
	if err != nil || ordinal < 0 || ordinal >= 1<<16 {
		return "", 0, fmt.Errorf("device %q: expected %s:N with a number N", device, name)
	}
	return name, ordinal, nil
}

// Find returns the path of the plugin for a platform.
func (f *Finder) Find(name string) (string, error) {
	key := variable + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if path := f.getenv(key); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		return path, nil
	}
	var looked []string
	for _, pattern := range f.patterns(name) {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			continue // a folder's name that can't be a pattern
		}
		if len(paths) > 0 {
			slices.Sort(paths)
			return preferred(paths), nil
		}
		looked = append(looked, pattern)
	}
	if !slices.Contains(f.Names(), name) {
		return "", fmt.Errorf("device %q: %w (known: cpu, %s; gesso plugin add, or %s=path, adds it)", name, ErrNoPlugin, strings.Join(f.Names(), ", "), key)
	}
	return "", fmt.Errorf("%w for %s: %s is not set, and there is none at %s", ErrNoPlugin, name, key, strings.Join(shorten(looked), ", "))
}

// preferred is the last path in alphabetical order; among XLA's CPU plugins the one that is built for jax.
func preferred(paths []string) string {
	for _, p := range paths {
		if strings.Contains(filepath.Base(p), "jax") {
			return p
		}
	}
	return paths[len(paths)-1]
}

// shorten keeps an error readable.
func shorten(paths []string) []string {
	if len(paths) > 3 {
		return append(slices.Clone(paths[:3]), fmt.Sprintf("%d more places", len(paths)-3))
	}
	return paths
}

// patterns are the places of a platform's plugin, the most wanted first.
func (f *Finder) patterns(name string) []string {
	var ps []string
	if name == "tpu" {
		if path := f.getenv("TPU_LIBRARY_PATH"); path != "" {
			ps = append(ps, path)
		}
	}
	if f.CacheDir != "" {
		ps = append(ps, filepath.Join(f.CacheDir, "plugins", name, "*.so"))
	}
	for _, site := range f.sitePackages() {
		for _, p := range packaged[name] {
			ps = append(ps, filepath.Join(site, filepath.FromSlash(p)))
		}
	}
	if name == "tpu" {
		for _, p := range []string{"lib/libtpu.so", "usr/lib/libtpu.so", "usr/local/lib/libtpu.so"} {
			ps = append(ps, filepath.Join(f.Root, filepath.FromSlash(p)))
		}
	}
	return ps
}

// packaged are the plugins inside Python packages.
var packaged = map[string][]string{
	"xla-cpu": {
		"lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "fastatomstruct_xla_cpu/libpjrt_cpu.so",
		"xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
	},
	"tpu":  {"libtpu/libtpu.so"},
	"cuda": {"jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
}

// sitePackages are the folders of installed Python packages, the user's environment first.
func (f *Finder) sitePackages() []string {
	var dirs []string
	add := func(patterns ...string) {
		for _, p := range patterns {
			found, _ := filepath.Glob(p)
			slices.Reverse(found) // the newest Python first
			for _, d := range found {
				if !slices.Contains(dirs, d) {
					dirs = append(dirs, d)
				}
			}
		}
	}
	for _, p := range filepath.SplitList(f.getenv("PYTHONPATH")) {
		if p != "" {
			add(p)
		}
	}
	for _, key := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if p := f.getenv(key); p != "" {
			add(filepath.Join(p, "lib", "python3*", "site-packages"))
		}
	}
	if home := f.getenv("HOME"); home != "" {
		add(filepath.Join(home, ".local", "lib", "python3*", "site-packages"))
	}
	for _, p := range filepath.SplitList(f.getenv("PATH")) { // python3 is a link into its installation
		if exe, err := filepath.EvalSymlinks(filepath.Join(p, "python3")); err == nil {
			add(filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib", "python3*", "site-packages"))
		}
	}
	for _, p := range []string{"usr/local/lib/python3*/site-packages", "usr/local/lib/python3*/dist-packages", "usr/lib/python3/dist-packages"} {
		add(filepath.Join(f.Root, filepath.FromSlash(p)))
	}
	return dirs
}

// Check says why a device can't be used, as far as is known without starting its platform in this process.
func (f *Finder) Check(ctx context.Context, device string) error {
	name, _, err := ParseDevice(device)
	if err == nil {
		_, err = f.usable(ctx, name)
	}
	return err
}

// Open starts the platform of a device such as "xla-cpu" or "tpu:1", and returns the device's ordinal.
func (f *Finder) Open(ctx context.Context, device string) (*pjrt.Client, int, error) {
	name, ordinal, err := ParseDevice(device)
	if err != nil {
		return nil, 0, err
	}
	path, err := f.usable(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	o := options(name, ordinal)
	o.Cache = f.Programs()
	if name == "tpu" {
		o.Adapt = f.adaptTPU
	}
	c, err := pjrt.New(path, o)
	if err != nil {
		return nil, 0, f.explain(name, fmt.Errorf("%s: %w", name, err))
	}
	if n := len(c.Devices()); ordinal >= n {
		c.Close()
		return nil, 0, fmt.Errorf("%s: no device %d, there are %d", name, ordinal, n)
	}
	return c, ordinal, nil
}

// Programs is the cache of compiled programs, nil without a cache folder.
func (f *Finder) Programs() *diskcache.Cache {
	if f.CacheDir == "" {
		return nil
	}
	return diskcache.New(filepath.Join(f.CacheDir, "executables"), f.CacheLimit)
}

// options are what a platform's client is started with.
func options(name string, ordinal int) pjrt.Options {
	o := pjrt.Options{Name: name}
	if name == "xla-cpu" {
		// The processor is one device, unless somebody asks for more.
		o.Client = map[string]any{"cpu_device_count": int64(ordinal + 1)}
	}
	return o
}

// usable returns the plugin of a platform after making sure that it can be loaded, and that there is hardware for it.
func (f *Finder) usable(ctx context.Context, name string) (string, error) {
	path, err := f.Find(name)
	hardware := f.hardware(name)
	switch {
	case err != nil && hardware != nil && slices.Contains(f.Names(), name):
		return "", fmt.Errorf("%w; %w", hardware, err)
	case err != nil:
		return "", err
	case hardware != nil:
		return "", fmt.Errorf("%w (the plugin is %s)", hardware, path)
	}
	if _, err := f.examine(ctx, name, path, nil); err != nil {
		return "", f.explain(name, err)
	}
	return path, f.prepare(name, path)
}

// Status is what is known of a platform.
type Status struct {
	Name    string
	Plugin  string // the plugin's versions; empty if unknown
	Path    string // of its plugin; empty if there is none
	Devices []backend.Device
	Err     error // why its devices can't be used
}

// List looks at every platform. Plugins are loaded in child processes only.
func (f *Finder) List(ctx context.Context) []Status {
	var all []Status
	for _, name := range f.Names() {
		s := Status{Name: name}
		s.Path, s.Err = f.Find(name)
		hardware := f.hardware(name)
		if s.Err == nil {
			var env []string
			if hardware != nil {
				env = withoutHardware(name)
			}
			info, err := f.examine(ctx, name, s.Path, env)
			s.Plugin, s.Devices, s.Err = info.Plugin, info.Devices, f.explain(name, err)
		}
		if hardware != nil {
			s.Err, s.Devices = hardware, nil
		}
		all = append(all, s)
	}
	return all
}
