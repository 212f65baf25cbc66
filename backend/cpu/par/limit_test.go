package par

import (
	"math"
	"runtime"
	"testing"
	"testing/fstest"
)

func TestProcessorLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no files":          {nil, math.Inf(1)},
		"v2 without limit":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, math.Inf(1)},
		"v2 one processor":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1},
		"v2 limit above":    {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5},
		"v1 joined mount":   {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/x\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 0.5},
		"v1 own mount":      {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/docker/y\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 2},
		"v1 without limit":  {map[string]string{"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, math.Inf(1)},
		"cpuset is another": {map[string]string{"proc/self/cgroup": "4:cpuset:/\nnonsense\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, math.Inf(1)},
	} {
		files := fstest.MapFS{}
		for p, text := range c.files {
			files[p] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := processorLimit(files); got != c.want {
			t.Errorf("%s: %g processors, want %g", name, got, c.want)
		}
	}
}

func TestThreads(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	if got := Threads(); got != runtime.GOMAXPROCS(0) {
		t.Errorf("with GOMAXPROCS set: %d threads, want %d", got, runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	if got := Threads(); got < 1 || got > runtime.GOMAXPROCS(0) {
		t.Errorf("%d threads of %d", got, runtime.GOMAXPROCS(0))
	}
}
