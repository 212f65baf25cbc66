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
	old := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(old)
	limited := func(max string) fstest.MapFS {
		return fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/")}, "sys/fs/cgroup/cpu.max": {Data: []byte(max)}}
	}
	for _, c := range []struct {
		env, max string
		want     int
	}{
		{"", "max 100000", 3}, {"", "100000 100000", 1}, {"", "10000 100000", 1}, {"", "150000 100000", 2}, {"", "900000 100000", 3},
		{"3", "100000 100000", 3},
	} {
		t.Setenv("GOMAXPROCS", c.env)
		if got := threads(limited(c.max)); got != c.want {
			t.Errorf("GOMAXPROCS=%q and a limit of %s: %d threads, want %d", c.env, c.max, got, c.want)
		}
	}
	t.Setenv("GOMAXPROCS", "")
	if got := threads(fstest.MapFS{}); got != 3 {
		t.Errorf("without control groups: %d threads, want 3", got)
	}
}
