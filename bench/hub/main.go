// Command hub measures downloads from a Hub on the loopback interface: Gesso's client against huggingface_hub with
// hf_xet, the same files, in one run, turn by turn, each in a process of its own.
//
//	python3 -m venv venv && venv/bin/pip install huggingface_hub==2.4.0 hf_xet==1.8.0
//	go run ./bench/hub -python venv/bin/python
//
// It prints, for each way of fetching, the median seconds, the throughput of the file's own bytes, the mean processor time
// of the client's process, and by how much its peak resident memory is above what it was before the download.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gesso-go/gesso/hub"
	"github.com/gesso-go/gesso/hub/hubtest"
)

// outcome is what a client's process reports.
type outcome struct {
	Seconds float64       `json:"seconds"`
	Memory  int64         `json:"memory"` // bytes above the start
	cpu     time.Duration // of the process, from its start to its end
}

func main() {
	if os.Getenv("BENCH_PULL") != "" {
		pull()
		return
	}
	size := flag.Int("mb", 1024, "megabytes to download")
	files := flag.Int("files", 4, "number of files")
	rounds := flag.Int("rounds", 3, "runs of each client")
	python := flag.String("python", "", "a Python with huggingface_hub and hf_xet; without it only Gesso is measured")
	dir := flag.String("dir", "", "folder for the downloads, default the system's temporary folder")
	sparse := flag.Int64("sparse", 0, "in place of -mb: one file of so many gigabytes of zeros with a little between")
	flag.Parse()
	if err := run(*size, *files, *rounds, *python, *dir, *sparse); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(mb, files, rounds int, python, dir string, sparse int64) error {
	server := hubtest.New()
	defer server.Close()
	server.XorbCut = 60 << 20
	repo := server.AddModel("bench/model")
	total := int64(0)
	if sparse > 0 {
		repo.AddReader("sparse.bin", holes{size: sparse << 30}, sparse<<30)
		total = sparse << 30
	} else {
		for i := range files {
			data := floats(uint64(i), mb<<20/files)
			total += int64(len(data))
			repo.AddXet(fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, files), data)
		}
	}
	fmt.Printf("%d files, %d MB, %d runs each\n", len(repo.Files()), total>>20, rounds)
	type client struct {
		name string
		run  func(cache string) (outcome, error)
	}
	var clients []client
	for _, xet := range []bool{true, false} {
		route := map[bool]string{true: "xet", false: "plain http"}[xet]
		clients = append(clients, client{"gesso, " + route, func(cache string) (outcome, error) {
			return child(xet, server.URL(), cache, []string{"BENCH_PULL=1"}, os.Args[0])
		}})
		if python != "" {
			clients = append(clients, client{"huggingface_hub, " + route, func(cache string) (outcome, error) {
				return child(xet, server.URL(), cache, nil, python, "-c", pythonPull)
			}})
		}
	}
	results := map[string][]outcome{}
	for range rounds {
		for _, c := range clients {
			cache, err := os.MkdirTemp(dir, "hub-bench")
			if err != nil {
				return err
			}
			o, err := c.run(cache)
			if err == nil {
				err = check(cache, total)
			}
			os.RemoveAll(cache)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[c.name] = append(results[c.name], o)
		}
	}
	fmt.Printf("\n%-28s %10s %10s %12s %14s\n", "client", "seconds", "MB/s", "cpu seconds", "memory, MB")
	for _, c := range clients {
		all := results[c.name]
		slices.SortFunc(all, func(a, b outcome) int { return int((a.Seconds - b.Seconds) * 1e6) })
		memory, cpu := int64(0), time.Duration(0)
		for _, o := range all {
			memory = max(memory, o.Memory)
			cpu += o.cpu / time.Duration(len(all))
		}
		median := all[len(all)/2].Seconds
		fmt.Printf("%-28s %10.2f %10.0f %12.2f %14d\n", c.name, median, float64(total)/1e6/median, cpu.Seconds(), memory>>20)
	}
	return nil
}

// child runs a client in its own process.
func child(xet bool, endpoint, cache string, env []string, program string, args ...string) (outcome, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HF_HOME="+cache, "HF_ENDPOINT="+endpoint, "HF_HUB_DISABLE_PROGRESS_BARS=1",
		"HF_HUB_DISABLE_TELEMETRY=1", "NO_PROXY=127.0.0.1", "HTTP_PROXY=", "http_proxy=", "HF_TOKEN=")
	if !xet {
		cmd.Env = append(cmd.Env, "HF_HUB_DISABLE_XET=1")
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	err = json.Unmarshal(out, &o)
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return o, err
}

// pythonPull is the other client. Peak memory is what the system says, as for Gesso.
const pythonPull = `
import json, time
from huggingface_hub import snapshot_download
import hf_xet
def memory(name):
    with open("/proc/self/status") as f:
        return next(int(l.split()[1]) for l in f if l.startswith(name)) * 1024
before, start = memory("VmRSS"), time.monotonic()
snapshot_download("bench/model")
print(json.dumps({"seconds": time.monotonic() - start, "memory": memory("VmHWM") - before}))
`

// pull is Gesso's client.
func pull() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	cfg, err := hub.ConfigFromEnv(os.Getenv)
	fail(err)
	before, start := memory("VmRSS"), time.Now()
	_, err = hub.Pull(context.Background(), cfg, "bench/model", hub.Options{})
	fail(err)
	fail(json.NewEncoder(os.Stdout).Encode(outcome{Seconds: time.Since(start).Seconds(), Memory: memory("VmHWM") - before}))
}

// memory reads a value of /proc/self/status, in bytes; 0 where there is no such file.
func memory(name string) int64 {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// check compares the size of what was downloaded.
func check(cache string, want int64) error {
	var got int64
	snapshot, err := filepath.Glob(filepath.Join(cache, "hub", "models--bench--model", "snapshots", "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range snapshot {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		got += info.Size()
	}
	if got != want {
		return fmt.Errorf("%d bytes were downloaded, expected %d", got, want)
	}
	return nil
}

// floats returns bytes like those of bfloat16 weights: the exponent byte of each pair hardly varies.
func floats(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n&^7)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Uint64()&0x81FF_81FF_81FF_81FF|0x3C00_3C00_3C00_3C00)
	}
	return b
}

// holes is a file of zeros with a line of text at the start of each gigabyte.
type holes struct{ size int64 }

func (h holes) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), h.size-off))
	if n <= 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	for gb := off >> 30; gb<<30 < off+int64(n); gb++ {
		mark := []byte(fmt.Sprintf("gigabyte %d\n", gb))
		for i, c := range mark {
			if at := gb<<30 + int64(i) - off; at >= 0 && at < int64(n) {
				p[at] = c
			}
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
