package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/gesso-go/gesso/hub/internal/wire"
	"github.com/gesso-go/gesso/hub/xet"
)

// Config says where the Hub is, where the cache is, and how to get there. ConfigFromEnv makes one from the environment
// as the official client reads it. The zero value of every field but CacheDir has a working meaning.
type Config struct {
	Endpoint string // default https://huggingface.co
	CacheDir string // the folder that holds models--org--name
	Token    string // sent to the endpoint's own origin only
	Offline  bool   // no request leaves the machine

	DisableXet         bool // fetch every file by plain HTTP
	DisableSymlinks    bool // put real files into snapshots
	DisableSharedBlobs bool // don't use the cache-wide store of Xet files

	Timeout         time.Duration // the longest silence in a transfer, default 10 s
	MetadataTimeout time.Duration // the same for questions about a repository, default 10 s
	Workers         int           // files at the same time, default 8
	Fetches         int           // Xet ranges at the same time, default 16

	Proxy     func(*url.URL) (*url.URL, error) // default none
	CAFiles   []string                         // more certificates to trust, PEM
	Transport http.RoundTripper                // default: made from Proxy and CAFiles
	Clock     Clock                            // default: the real time
	UserAgent string

	// FreeSpace returns the bytes that can still be written to a folder's file system. Default: ask the system.
	FreeSpace func(dir string) (int64, error)
	// Symlink makes a symbolic link. Default os.Symlink.
	Symlink func(target, link string) error
	// Warn is told in one line about what went wrong without stopping the work. Default: nobody.
	Warn func(message string)
}

// Clock is the time, and waiting.
type Clock = wire.Clock

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// DefaultEndpoint is the public Hub.
const DefaultEndpoint = "https://huggingface.co"

// ConfigFromEnv reads the settings that huggingface_hub honours: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, XDG_CACHE_HOME,
// HF_TOKEN, HF_TOKEN_PATH and the token file, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT, HF_HUB_ETAG_TIMEOUT,
// HF_HUB_DISABLE_XET, HF_HUB_DISABLE_SYMLINKS, HF_HUB_DISABLE_SHARED_BLOBS, HF_HUB_DISABLE_IMPLICIT_TOKEN, the proxy
// variables, SSL_CERT_FILE and REQUESTS_CA_BUNDLE. Pass os.Getenv.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := strings.TrimSpace(getenv(n)); v != "" {
				return v
			}
		}
		return ""
	}
	on := func(names ...string) bool {
		for _, n := range names {
			switch strings.ToUpper(strings.TrimSpace(getenv(n))) {
			case "1", "ON", "YES", "TRUE":
				return true
			}
		}
		return false
	}
	home := first("HOME")
	if home == "" && runtime.GOOS == "windows" {
		home = first("USERPROFILE")
	}
	expand := func(path string) string {
		if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
			path = home + rest
		}
		// A variable that isn't set stays as it is written, as in Python.
		return os.Expand(path, func(name string) string {
			if v := getenv(name); v != "" {
				return v
			}
			return "$" + name
		})
	}

	cfg := Config{
		Endpoint:           strings.TrimRight(first("HF_ENDPOINT"), "/"),
		Offline:            on("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
		DisableXet:         on("HF_HUB_DISABLE_XET"),
		DisableSymlinks:    on("HF_HUB_DISABLE_SYMLINKS"),
		DisableSharedBlobs: on("HF_HUB_DISABLE_SHARED_BLOBS"),
	}
	hfHome := expand(first("HF_HOME"))
	if hfHome == "" {
		base := expand(first("XDG_CACHE_HOME"))
		if base == "" && home != "" {
			base = filepath.Join(home, ".cache")
		}
		if base != "" {
			hfHome = filepath.Join(base, "huggingface")
		}
	}
	cfg.CacheDir = expand(first("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"))
	if cfg.CacheDir == "" {
		if hfHome == "" {
			return cfg, errors.New("no home folder is known: set HF_HOME to the folder for downloaded models")
		}
		cfg.CacheDir = filepath.Join(hfHome, "hub")
	}

	cfg.Token = cleanToken(first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
	if cfg.Token == "" {
		path := expand(first("HF_TOKEN_PATH"))
		if path == "" && hfHome != "" {
			path = filepath.Join(hfHome, "token")
		}
		if data, err := os.ReadFile(path); err == nil {
			cfg.Token = cleanToken(string(data))
		}
	}
	if on("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		cfg.Token = ""
	}

	var err error
	if cfg.Timeout, err = seconds("HF_HUB_DOWNLOAD_TIMEOUT", first("HF_HUB_DOWNLOAD_TIMEOUT")); err != nil {
		return cfg, err
	}
	if cfg.MetadataTimeout, err = seconds("HF_HUB_ETAG_TIMEOUT", first("HF_HUB_ETAG_TIMEOUT")); err != nil {
		return cfg, err
	}
	all := first("ALL_PROXY", "all_proxy")
	proxy := httpproxy.Config{
		HTTPProxy:  first("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: first("HTTPS_PROXY", "https_proxy"),
		NoProxy:    first("NO_PROXY", "no_proxy"),
	}
	if proxy.HTTPProxy == "" {
		proxy.HTTPProxy = all
	}
	if proxy.HTTPSProxy == "" {
		proxy.HTTPSProxy = all
	}
	if proxy.HTTPProxy != "" || proxy.HTTPSProxy != "" {
		cfg.Proxy = proxy.ProxyFunc()
	}
	for _, n := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} {
		if path := expand(first(n)); path != "" {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				continue // a folder of hashed certificates, which the system's own code reads
			}
			cfg.CAFiles = append(cfg.CAFiles, path)
		}
	}
	return cfg, nil
}

func cleanToken(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(s))
}

func seconds(name, value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n > 0 && n < 1e6) {
		return 0, fmt.Errorf("%s=%s: expected a number of seconds", name, value)
	}
	return time.Duration(n * float64(time.Second)), nil
}

// A session is one call's use of a Config: its defaults filled in, its connections.
type session struct {
	Config
	endpoint *url.URL
	site     string       // the endpoint as messages show it, without a password
	meta     *wire.Client // questions: answers are small, tries are quick
	data     *wire.Client // file contents
	report   reporter
	store    store

	xet       *xet.Client
	xetOnce   sync.Once
	xetBroken atomic.Bool // the Hub gives no tokens for it
	routes    sync.Map    // path → where Xet tokens for it come from
}

func newSession(cfg Config, progress func(Event)) (*session, error) {
	if cfg.CacheDir == "" {
		return nil, errors.New("no cache folder is set")
	}
	abs, err := filepath.Abs(cfg.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("cache folder %s: %w", cfg.CacheDir, err)
	}
	cfg.CacheDir = abs
	if cfg.Endpoint == "" {
		cfg.Endpoint = DefaultEndpoint
	}
	cfg.Endpoint = strings.TrimRight(cfg.Endpoint, "/")
	endpoint, err := url.Parse(cfg.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, errors.New("HF_ENDPOINT: expected an address like https://huggingface.co")
	}
	if cfg.Clock == nil {
		cfg.Clock = realClock{}
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 8
	}
	if cfg.FreeSpace == nil {
		cfg.FreeSpace = freeSpace
	}
	if cfg.Symlink == nil {
		cfg.Symlink = os.Symlink
	}
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "gesso; go/" + strings.TrimPrefix(runtime.Version(), "go")
	}
	if cfg.Transport == nil {
		if cfg.Transport, err = wire.NewTransport(wire.TransportOptions{Proxy: cfg.Proxy, CAFiles: cfg.CAFiles}); err != nil {
			return nil, err
		}
	}
	s := &session{Config: cfg, endpoint: endpoint, site: wire.Redact(endpoint)}
	s.report.to = progress
	w := wire.Client{
		Transport: cfg.Transport, Clock: cfg.Clock, Endpoint: endpoint, Token: cfg.Token, UserAgent: cfg.UserAgent,
		Idle: cfg.Timeout, Offline: cfg.Offline, Notify: s.report.wait,
	}
	data, meta := w, w
	meta.Idle = cfg.MetadataTimeout
	s.data, s.meta = &data, &meta
	s.store = store{dir: cfg.CacheDir, symlink: cfg.Symlink, warn: cfg.Warn, noSymlinks: cfg.DisableSymlinks}
	return s, nil
}

// close lets go of idle connections.
func (s *session) close() {
	if c, ok := s.Transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
