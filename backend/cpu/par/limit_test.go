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
		"no files":                {nil, math.Inf(1)},
		"v2 without limit":        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, math.Inf(1)},
		"v2 one processor":        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1},
		"v2 limit above":          {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5},
		"v1 joined mount":         {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/x\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 0.5},
		"v1 own mount":            {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/docker/y\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 2},
		"v1 without limit":        {map[string]string{"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, math.Inf(1)},
		"v2 container's own root": {map[string]string{"proc/self/cgroup": "0::/../../kubepods.slice/pod1\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5},
		"v1 container's own root": {map[string]string{
			"proc/self/cgroup":                    "12:pids:/docker/5f2a\n6:cpu,cpuacct:/docker/5f2a\n1:name=systemd:/docker/5f2a\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1},
		"v1 beside v2": {map[string]string{
			"proc/self/cgroup": "3:cpuacct,cpu:/user.slice\n0::/user.slice/session-1.scope\n",
			"sys/fs/cgroup/unified/user.slice/session-1.scope/cgroup.procs": "1\n",
			"sys/fs/cgroup/cpuacct,cpu/user.slice/cpu.cfs_quota_us":         "300000\n",
			"sys/fs/cgroup/cpuacct,cpu/user.slice/cpu.cfs_period_us":        "100000\n"}, 3},
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

// TestNewPoolFollowsTheLimit: a pool whose size nobody gives has one worker in a container of one processor.
func TestNewPoolFollowsTheLimit(t *testing.T) {
	old, files := runtime.GOMAXPROCS(3), root
	defer func() { root = files; runtime.GOMAXPROCS(old) }()
	t.Setenv("GOMAXPROCS", "")
	root = fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/")}, "sys/fs/cgroup/cpu.max": {Data: []byte("100000 100000")}}
	for asked, want := range map[int]int{0: 1, 2: 2} {
		p := New(asked)
		if got := p.Workers(); got != want {
			t.Errorf("New(%d) has %d workers, want %d", asked, got, want)
		}
		p.Close()
	}
}

// Whatever the files hold, there is a thread, and there are no more than GOMAXPROCS.
func FuzzThreads(f *testing.F) {
	f.Add("0::/a", "max 100000", "", "")
	f.Add("4:cpu,cpuacct:/a\n0::/../b", "1e-300 1e300", "50000", "100000")
	f.Add("0::/a", "NaN inf", "-1", "0")
	f.Fuzz(func(t *testing.T, groups, max, quota, period string) {
		t.Setenv("GOMAXPROCS", "")
		root := fstest.MapFS{}
		for p, text := range map[string]string{
			"proc/self/cgroup": groups, "sys/fs/cgroup/cpu.max": max, "sys/fs/cgroup/a/cpu.max": max,
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": quota, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": period,
		} {
			root[p] = &fstest.MapFile{Data: []byte(text)}
		}
		if n := threads(root); n < 1 || n > runtime.GOMAXPROCS(0) {
			t.Errorf("%d threads of %d", n, runtime.GOMAXPROCS(0))
		}
	})
}
