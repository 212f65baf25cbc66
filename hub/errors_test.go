package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/hub/internal/wire"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(h *hubtest.Server, cfg *Config)
		ref   string
		kind  error
		says  []string
	}{
		{"gated, no token", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/gated").Gated = true }, "acme/gated", ErrGated,
			[]string{"is gated", "/acme/gated", "HF_TOKEN", "/settings/tokens"}},
		{"gated, token without access", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/gated").Gated = true; cfg.Token = "hf_x" },
			"acme/gated", ErrGated, []string{"account of your token", "/acme/gated", "authorized list"}},
		{"bad token", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/tiny"); h.Token = "right"; cfg.Token = "wrong" },
			"acme/tiny", ErrUnauthorized, []string{"doesn't accept your token", "HF_TOKEN"}},
		{"unknown name", func(h *hubtest.Server, cfg *Config) {
			os.MkdirAll(filepath.Join(cfg.CacheDir, "models--acme--tiny"), 0o755)
			os.MkdirAll(filepath.Join(cfg.CacheDir, "models--other--thing"), 0o755)
		}, "acme/tinny", ErrNotFound, []string{"no model acme/tinny", "did you mean acme/tiny", "private", "HF_TOKEN"}},
		{"offline", func(h *hubtest.Server, cfg *Config) { cfg.Offline = true }, "acme/tiny", ErrOffline,
			[]string{"acme/tiny is not in the cache", "HF_HUB_OFFLINE"}},
		{"rate limit that is too long", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(*hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Status: 429, Header: http.Header{"Retry-After": {"86400"}}}
			}
		}, "acme/tiny", ErrRateLimited, []string{"limits your requests", "24h"}},
		{"login page in between", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Body: []byte("<html>log in</html>")}
			}
		}, "acme/tiny", ErrNotHub, []string{"something else than JSON", "login page", "not in the cache"}},
		{"empty answers", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Status: 200}
			}
		}, "acme/tiny", ErrNotHub, []string{"ends early", "not in the cache"}},
		{"redirects without end", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{RedirectTo: r.Path}
			}
		}, "acme/tiny", ErrNotHub, []string{"redirects"}},
		{"null in place of a listing", func(h *hubtest.Server, cfg *Config) {
			h.AddModel("acme/tiny")
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				if r.Kind != hubtest.Tree {
					return nil
				}
				return &hubtest.Fault{Body: []byte("null")}
			}
		}, "acme/tiny", nil, []string{"acme/tiny", "null"}},
		{"a size beyond all files", func(h *hubtest.Server, cfg *Config) {
			h.AddModel("acme/tiny")
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				if r.Kind != hubtest.Tree {
					return nil
				}
				hash := strings.Repeat("c", 64)
				one := fmt.Sprintf(`{"type":"file","path":"%%s","oid":"a","size":1,"xetHash":"%s","lfs":{"oid":"%s","size":9223372036854775807}}`, hash, hash)
				return &hubtest.Fault{Body: []byte("[" + fmt.Sprintf(one, "a.bin") + "," + fmt.Sprintf(one, "b.bin") + "]")}
			}
		}, "acme/tiny", nil, []string{"a.bin has the size 9223372036854775807"}},
		{"empty repository", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/tiny") }, "acme/tiny", ErrNotFound,
			[]string{"acme/tiny has no files"}},
		{"unsafe name", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/tiny").Add("../x.json", nil) }, "acme/tiny", nil,
			[]string{"unsafe path", "../x.json"}},
		{"token no header can hold", func(h *hubtest.Server, cfg *Config) { h.AddModel("acme/tiny"); cfg.Token = "hf_\x01x" }, "acme/tiny", nil,
			[]string{"HF_TOKEN", "control character"}},
		{"server repeats the token", func(h *hubtest.Server, cfg *Config) {
			cfg.Token = "hf_secret"
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Status: 403, Body: []byte(`{"error": "\u001b[2Jno access with ` + r.Auth + `"}`)}
			}
		}, "acme/tiny", ErrUnauthorized, []string{"\ufffd[2Jno access with Bearer (token)"}},
		{"password in the endpoint", func(h *hubtest.Server, cfg *Config) {
			cfg.Endpoint = strings.Replace(cfg.Endpoint, "://", "://me:sesame@", 1)
			cfg.Token = "sesame"
		}, "acme/tiny", ErrNotFound, []string{"at " + "http://127.0.0.1"}},
		{"forbidden", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Status: 403, Header: http.Header{"X-Error-Message": {"token lacks the right read-repo"}}}
			}
		}, "acme/tiny", ErrUnauthorized, []string{"forbidden", "lacks the right", "/settings/tokens"}},
		{"disabled", func(h *hubtest.Server, cfg *Config) {
			h.Fault = func(r *hubtest.Request) *hubtest.Fault {
				return &hubtest.Fault{Status: 403, Header: http.Header{"X-Error-Message": {"Access to this resource is disabled."}}}
			}
		}, "acme/tiny", ErrNotFound, []string{"disabled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hubtest.New()
			defer h.Close()
			cfg := testConfig(t, h)
			c.setup(h, &cfg)
			_, err := Pull(context.Background(), cfg, c.ref, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q doesn't say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") || cfg.Token != "" && strings.Contains(err.Error(), cfg.Token) {
				t.Errorf("bad message: %q", err)
			}
		})
	}
}

// A login page of the network answers for the Hub: what the cache has is used, as when there is no network.
func TestLoginPage(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	addPipeline(h.AddModel("acme/tiny"))
	cfg := testConfig(t, h)
	var warned []string
	cfg.Warn = func(s string) { warned = append(warned, s) }
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]hubtest.Fault{
		"page": {Body: []byte("<html>log in</html>")}, "redirects": {RedirectTo: "/login"}, "empty": {Status: 200},
	} {
		h.Fault = func(*hubtest.Request) *hubtest.Fault { return &fault }
		warned = nil
		if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "using what the cache has") {
			t.Errorf("%s: warned of %q", name, warned)
		}
	}
}

// A model that was taken down or closed, or a token that ran out, leaves what the cache has in use, as huggingface_hub does.
func TestRefusedButCached(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	repo := h.AddModel("acme/tiny")
	addPipeline(repo)
	cfg := testConfig(t, h)
	if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatal(err)
	}
	answer := func(status int, code string) hubtest.Fault {
		return hubtest.Fault{Status: status, Header: http.Header{"X-Error-Code": {code}}}
	}
	for name, c := range map[string]struct {
		fault hubtest.Fault
		used  bool
	}{
		"gone":        {answer(404, "RepoNotFound"), true},
		"gated":       {answer(403, "GatedRepo"), true},
		"anonymous":   {answer(401, "RepoNotFound"), true},
		"bad token":   {hubtest.Fault{Status: 401, Header: http.Header{"X-Error-Message": {"Invalid credentials in Authorization header"}}}, true},
		"no revision": {answer(404, "RevisionNotFound"), false},
	} {
		h.Fault = func(*hubtest.Request) *hubtest.Fault { return &c.fault }
		var warned []string
		cfg.Warn = func(s string) { warned = append(warned, s) }
		_, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
		if used := err == nil && len(warned) == 1; used != c.used {
			t.Errorf("%s: %v, warned of %q", name, err, warned)
		}
		var status *wire.StatusError // what is in the cache isn't real weights, so it fails in any case
		if _, err := Describe(context.Background(), cfg, "acme/tiny", Options{}); errors.As(err, &status) == c.used {
			t.Errorf("%s: describe: %v", name, err)
		}
		if _, err := Pull(context.Background(), cfg, "acme/tiny", Options{Include: []string{"README.md"}}); err == nil {
			t.Errorf("%s: a file that isn't in the cache was found", name)
		}
	}
}

// A connection without a length breaks inside a listing: what came is asked for again.
func TestListingCutShort(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	addPipeline(h.AddModel("acme/tiny"))
	for _, body := range []string{`[{"type":"file","pa`, `[`, ""} {
		h.Forget()
		h.Fault = func(r *hubtest.Request) *hubtest.Fault {
			if r.Kind != hubtest.Tree || r.Number > 1 {
				return nil
			}
			return &hubtest.Fault{Status: 200, Body: []byte(body)}
		}
		if _, err := Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{}); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestProxyRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	for _, endpoint := range []string{"http://hub.test", "https://hub.test"} {
		env := map[string]string{
			"HF_HOME": t.TempDir(), "HF_ENDPOINT": endpoint, "HTTPS_PROXY": proxy.URL, "HTTP_PROXY": proxy.URL,
		}
		cfg, err := ConfigFromEnv(func(k string) string { return env[k] })
		if err != nil {
			t.Fatal(err)
		}
		cfg.Clock = &fakeClock{}
		_, err = Pull(context.Background(), cfg, "acme/tiny", Options{})
		var refused *ProxyError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "hub.test") || !strings.Contains(err.Error(), "407") && !strings.Contains(err.Error(), "Proxy Authentication Required") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// xet-core#399: a company's own certificate authority must hold for all hosts, the store's too.
func TestOwnCertificateAuthority(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"sha": "` + hubtest.DefaultCommit + `"}`))
	}))
	defer secure.Close()
	env := map[string]string{"HF_HOME": t.TempDir(), "HF_ENDPOINT": secure.URL}
	ask := func() error {
		cfg, err := ConfigFromEnv(func(k string) string { return env[k] })
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSession(cfg, nil)
		if err != nil {
			return err
		}
		defer s.close()
		_, err = s.info(context.Background(), Ref{Kind: Model, Repo: "acme/tiny"}, true)
		return err
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority was trusted: %v", err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(path, pemOf(secure), 0o644)
	env["SSL_CERT_FILE"] = path
	if err := ask(); err != nil {
		t.Errorf("SSL_CERT_FILE isn't honoured: %v", err)
	}
	env["SSL_CERT_FILE"] = filepath.Join(t.TempDir(), "missing.pem")
	if err := ask(); err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestSilentServer(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	h.AddModel("acme/tiny").AddLFS("a.bin", randomBytes(1, 100_000))
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		if r.Kind == hubtest.Content {
			return &hubtest.Fault{Trickle: true}
		}
		return nil
	}
	cfg := testConfig(t, h)
	cfg.Timeout = 100 * time.Millisecond
	_, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	if err == nil || !strings.Contains(err.Error(), "HF_HUB_DOWNLOAD_TIMEOUT") {
		t.Errorf("error %v", err)
	}
	if n := len(h.Requests(hubtest.Content)); n != 5 {
		t.Errorf("%d tries, expected 5", n)
	}
}

func TestRetriesWaitAsAsked(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		want   []time.Duration
	}{
		{http.Header{}, []time.Duration{1e9, 2e9, 4e9, 8e9}},
		{http.Header{"Retry-After": {"7"}}, []time.Duration{7e9, 7e9, 7e9, 7e9}},
		{http.Header{"RateLimit": {`"api";r=0;t=55`}}, []time.Duration{56e9, 56e9, 56e9, 56e9}},
	} {
		h := hubtest.New()
		defer h.Close()
		h.Fault = func(*hubtest.Request) *hubtest.Fault { return &hubtest.Fault{Status: 429, Header: c.header} }
		cfg := testConfig(t, h)
		clock := cfg.Clock.(*fakeClock)
		var told []string
		Pull(context.Background(), cfg, "acme/tiny", Options{Progress: func(e Event) { told = append(told, e.Message) }})
		if len(clock.waits) != len(c.want) || len(told) != len(c.want) {
			t.Fatalf("%v: waits %v, told %q", c.header, clock.waits, told)
		}
		for i, w := range clock.waits {
			if w != c.want[i] {
				t.Errorf("%v: waits %v, want %v", c.header, clock.waits, c.want)
				break
			}
		}
	}
}

func TestChecksumMismatchIsTriedOnceMore(t *testing.T) {
	for _, times := range []int{1, 2} {
		h := hubtest.New()
		defer h.Close()
		repo := h.AddModel("acme/tiny")
		f := repo.AddLFS("a.bin", randomBytes(1, 100_000))
		h.Fault = func(r *hubtest.Request) *hubtest.Fault {
			if r.Kind == hubtest.Content && r.Number <= times {
				return &hubtest.Fault{CorruptAt: 5000}
			}
			return nil
		}
		cfg := testConfig(t, h)
		r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
		if times == 1 {
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, r.Dir, repo, []string{"a.bin"})
			continue
		}
		if !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), f.SHA256) {
			t.Errorf("error %v", err)
		}
		if left := filesBelow(t, filepath.Join(cfg.CacheDir, "models--acme--tiny", "blobs")); len(left) > 0 {
			t.Errorf("%d files are left", len(left))
		}
	}
}

// A signed address that is refused is asked for again; a clock that is off is named.
func TestSignatureRefused(t *testing.T) {
	for _, kind := range []hubtest.Kind{hubtest.Content, hubtest.Xorb} {
		h := hubtest.New()
		defer h.Close()
		h.NoXet = kind == hubtest.Content
		repo := h.AddModel("acme/tiny")
		repo.AddXet("a.bin", weights(1, 100_000))
		always := false
		h.Fault = func(r *hubtest.Request) *hubtest.Fault {
			if r.Kind == kind && (r.Number == 1 || always) || always && r.Kind == hubtest.Content {
				return &hubtest.Fault{Status: 403, Header: http.Header{"Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}}}
			}
			return nil
		}
		cfg := testConfig(t, h)
		r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, r.Dir, repo, []string{"a.bin"})
		always = true
		_, err = Pull(context.Background(), testConfig(t, h), "acme/tiny", Options{})
		if err == nil || !strings.Contains(err.Error(), "clock") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestInterruptedGoesOn(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := hubtest.New()
		defer h.Close()
		h.XorbCut = 150_000
		repo := h.AddModel("acme/tiny")
		repo.AddXet("a.bin", weights(1, 3_000_000))
		cfg := testConfig(t, h)
		cfg.DisableXet, cfg.Fetches = plain, 1
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Pull(ctx, cfg, "acme/tiny", Options{Progress: func(e Event) {
			if e.Done > 1_500_000 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("plain=%v: error %v", plain, err)
		}
		h.Forget()
		r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, r.Dir, repo, []string{"a.bin"})
		var sent int64
		for _, q := range h.Requests(hubtest.Xorb, hubtest.Content) {
			sent += q.Sent
		}
		if sent > 1_600_000 {
			t.Errorf("plain=%v: the second run fetched %d bytes", plain, sent)
		}
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
