package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gesso-go/gesso/hub/hubtest"
	"github.com/gesso-go/gesso/hub/xet"
)

// TestMain lets the test binary stand in for a program that pulls and is killed.
func TestMain(m *testing.M) {
	if endpoint := os.Getenv("GESSO_TEST_PULL"); endpoint != "" {
		_, err := Pull(context.Background(), killConfig(endpoint, os.Getenv("GESSO_TEST_CACHE")), "acme/tiny", Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killConfig receives with small buffers, so that what the server has sent is about what has arrived.
func killConfig(endpoint, dir string) Config {
	return Config{
		Endpoint: endpoint, CacheDir: dir,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if tcp, ok := conn.(*net.TCPConn); ok {
					tcp.SetReadBuffer(8 << 10)
				}
				return conn, err
			},
			DisableCompression: true, MaxIdleConnsPerHost: 16,
		},
	}
}

// kills is how many moments are tried.
const kills = 50

// TestKilledAtRandomMoments kills a pull with SIGKILL, again and again, and lets another one complete it. What was
// received before stays: at most a chunk of each file comes twice.
func TestKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 50 processes")
	}
	var g errgroup.Group
	g.SetLimit(6)
	for i := range kills {
		g.Go(func() error {
			t.Run(fmt.Sprint(i), func(t *testing.T) { playKill(t, uint64(i)) })
			return nil
		})
	}
	g.Wait()
}

func playKill(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	h := hubtest.New()
	defer h.Close()
	h.Pace = 4 * time.Millisecond // 2 MB/s for each connection
	repo := h.AddModel("acme/tiny")
	var names []string
	for i := range 4 {
		name := fmt.Sprintf("%d.bin", i)
		names = append(names, name)
		if data := weights(seed*10+uint64(i), 200_000+rng.IntN(500_000)); i%2 == 0 {
			repo.AddXet(name, data)
		} else {
			repo.AddLFS(name, data)
		}
	}
	var whole int64 // what one undisturbed pull receives
	for _, f := range repo.Files() {
		whole += f.Stored()
	}
	dir := filepath.Join(t.TempDir(), "hub")
	times := 1 + rng.IntN(2)
	for range times {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "GESSO_TEST_PULL="+h.URL(), "GESSO_TEST_CACHE="+dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// From before the first request to after the last one.
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		child.Process.Kill()
		child.Wait()
		cacheIsRight(t, dir, repo)
	}
	r, err := Pull(context.Background(), killConfig(h.URL(), dir), "acme/tiny", Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, r.Dir, repo, names)
	cacheIsRight(t, dir, repo)
	var sent int64
	for _, q := range h.Requests(hubtest.Content, hubtest.Xorb) {
		sent += q.Sent
	}
	// Besides the chunk, what lay in the buffers of the two sockets.
	const buffers = 48 << 10
	if again := sent - whole; again > int64(times*len(names))*(xet.MaxChunk+buffers) {
		t.Errorf("%d bytes came twice", again)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "blobs", "*incomplete*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
