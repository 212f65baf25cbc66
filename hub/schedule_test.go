package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/hub/internal/wire"
)

// schedules is how many random sequences of faults are played.
const schedules = 200

// TestRandomFaults plays random faults against a pull. It must end with the right files or with an error that says what
// happened; whatever lies in the cache afterwards is right; and without faults it then completes.
func TestRandomFaults(t *testing.T) {
	var evilToken sync.Map
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			evilToken.Store(r.URL.String(), true)
		}
		w.Header().Set("ETag", `"evil"`)
		w.Write(bytes.Repeat([]byte("this is not the file you asked for"), 3000))
	}))
	defer evil.Close()

	outcomes := map[string]int{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(12) // most of the time is spent waiting for silent servers
	for seed := range schedules {
		g.Go(func() error {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				outcome := playFaults(t, uint64(seed), evil.URL)
				mu.Lock()
				defer mu.Unlock()
				outcomes[outcome]++
			})
			return nil
		})
	}
	g.Wait()
	evilToken.Range(func(k, _ any) bool {
		t.Errorf("another host got the token: %v", k)
		return true
	})
	t.Logf("outcomes: %v", outcomes)
	if outcomes["complete"] < schedules/4 || outcomes["complete"] == schedules {
		t.Errorf("the faults are too hard or too easy to prove anything: %v", outcomes)
	}
}

func playFaults(t *testing.T, seed uint64, evil string) string {
	rng := rand.New(rand.NewPCG(seed, 99))
	h := hubtest.New()
	defer h.Close()
	h.Token = "hf_secret"
	h.XorbCut = 20_000 + rng.IntN(200_000)
	h.Page = 1 + rng.IntN(5)
	h.NoV2, h.ManyRanges, h.NoXet, h.NoTree = rng.IntN(4) == 0, rng.IntN(4) == 0, rng.IntN(4) == 0, rng.IntN(6) == 0
	repo := h.AddModel("acme/tiny")
	var names []string
	for i := range 2 + rng.IntN(4) {
		data := weights(seed*100+uint64(i), rng.IntN(300_000))
		name := fmt.Sprintf("part%d/%d.bin", i%2, i)
		switch rng.IntN(3) {
		case 0:
			repo.Add(name, data[:len(data)/8])
		case 1:
			repo.AddLFS(name, data)
		default:
			repo.AddXet(name, append(data, data[:len(data)/2]...))
		}
		names = append(names, name)
	}
	probability := []float64{0.05, 0.15, 0.3, 0.6}[rng.IntN(4)]
	var mu sync.Mutex
	h.Fault = func(r *hubtest.Request) *hubtest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if rng.Float64() > probability {
			return nil
		}
		return randomFault(rng, r.Kind, evil)
	}
	cfg := testConfig(t, h)
	cfg.Timeout, cfg.MetadataTimeout = 150*time.Millisecond, 150*time.Millisecond
	cfg.Workers, cfg.Fetches = 1+rng.IntN(4), 1+rng.IntN(4)

	r, err := Pull(context.Background(), cfg, "acme/tiny", Options{})
	cacheIsRight(t, cfg.CacheDir, repo)
	outcome := "complete"
	if err == nil {
		sameFiles(t, r.Dir, repo, names)
	} else {
		outcome = "error"
		if !explained(err) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), h.Token) {
			t.Errorf("unexpected error %T: %v", err, err)
		}
	}
	h.Change(func() { h.Fault = nil })
	cfg.Timeout, cfg.MetadataTimeout = 0, 0
	if r, err = Pull(context.Background(), cfg, "acme/tiny", Options{}); err != nil {
		t.Fatalf("without faults: %v", err)
	}
	sameFiles(t, r.Dir, repo, names)
	cacheIsRight(t, cfg.CacheDir, repo)
	return outcome
}

func randomFault(rng *rand.Rand, kind hubtest.Kind, evil string) *hubtest.Fault {
	at := 1 + int64(rng.ExpFloat64()*40_000)
	wait := http.Header{"Retry-After": {fmt.Sprint(rng.IntN(20))}}
	faults := []*hubtest.Fault{
		{Status: []int{500, 502, 503, 504}[rng.IntN(4)]}, {Status: 429, Header: wait}, {CutAfter: at}, {CutAfter: 1},
	}
	if rng.IntN(6) == 0 {
		faults = append(faults, &hubtest.Fault{Trickle: true})
	}
	switch kind {
	case hubtest.Content, hubtest.Resolve, hubtest.Head:
		faults = append(faults, &hubtest.Fault{WrongRange: true}, &hubtest.Fault{IgnoreRange: true, CutAfter: at},
			&hubtest.Fault{NoLength: true}, &hubtest.Fault{CorruptAt: at}, &hubtest.Fault{Truncate: at},
			&hubtest.Fault{ETag: `"changed"`}, &hubtest.Fault{ETag: `"` + strings.Repeat("ab", 32) + `"`},
			&hubtest.Fault{RedirectTo: evil + "/elsewhere"}, &hubtest.Fault{Status: 403}, &hubtest.Fault{Gzip: true})
	case hubtest.XetToken:
		faults = append(faults, &hubtest.Fault{Status: 401}, &hubtest.Fault{Status: 404}, &hubtest.Fault{RedirectTo: evil})
	case hubtest.Reconstruction:
		faults = append(faults, &hubtest.Fault{Status: 401}, &hubtest.Fault{Status: 416}, &hubtest.Fault{Status: 404},
			&hubtest.Fault{CorruptAt: 1 + rng.Int64N(600)}, &hubtest.Fault{Truncate: 1 + rng.Int64N(600)})
	case hubtest.Xorb:
		faults = append(faults, &hubtest.Fault{CorruptAt: at}, &hubtest.Fault{CorruptAt: 1 + rng.Int64N(8)},
			&hubtest.Fault{Truncate: at}, &hubtest.Fault{WrongRange: true}, &hubtest.Fault{Status: 403},
			&hubtest.Fault{NoLength: true, CutAfter: at}, &hubtest.Fault{RedirectTo: evil + "/xorb"})
	}
	return faults[rng.IntN(len(faults))]
}

// explained reports whether the error is one of those that name what happened.
func explained(err error) bool {
	var status *wire.StatusError
	var stall *wire.StallError
	var network *wire.NetError
	var broken *wire.Broken
	for _, kind := range []error{ErrNotFound, ErrUnauthorized, ErrRateLimited, ErrNotCached, ErrChecksum, ErrChanged, ErrNotHub} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, &status) || errors.As(err, &stall) || errors.As(err, &network) || errors.As(err, &broken)
}

// cacheIsRight fails if a blob or a file of a snapshot isn't what its name says.
func cacheIsRight(t *testing.T, dir string, repo *hubtest.Repo) {
	t.Helper()
	content := map[string][]byte{}
	for _, f := range repo.Files() {
		content[f.Path] = f.Bytes()
		content[f.SHA256+f.Git] = f.Bytes()
		if f.SHA256 != "" {
			content[f.SHA256] = f.Bytes()
		} else {
			content[f.Git] = f.Bytes()
		}
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".incomplete") {
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if len(parts) < 3 || parts[1] != "blobs" && parts[1] != "snapshots" {
			return nil
		}
		name := parts[2]
		if parts[1] == "snapshots" {
			name = strings.Join(parts[3:], "/")
		}
		data, err := os.ReadFile(path)
		if want, ok := content[name]; !ok || err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s is wrong: %d bytes, %v", rel, len(data), err)
		}
		return nil
	})
}
