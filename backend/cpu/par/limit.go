package par

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Threads returns how many threads work gets by default: GOMAXPROCS, which follows the affinity mask, but no more than the
// container's processor limit, rounded up. The Go runtime itself never goes below two for a limit. Who sets the variable
// GOMAXPROCS means it.
func Threads() int { return threads(root) }

// root is the file system in which control groups and nodes are looked for. Tests replace it.
var root = os.DirFS("/")

func threads(root fs.FS) int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" {
		return n
	}
	return int(max(1, math.Ceil(min(float64(n), processorLimit(root)))))
}

// processorLimit returns how many processors' time the control groups of this process allow, +Inf where there is no limit;
// root is the file system's. Both versions are read: a cpu.max, or a quota and a period, of the group and all above it.
func processorLimit(root fs.FS) float64 {
	limit := math.Inf(1)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return -1 // "max", and what nobody knows
		}
		return v
	}
	read := func(elem ...string) string {
		b, err := fs.ReadFile(root, path.Join(elem...))
		if err != nil {
			return ""
		}
		return string(b)
	}
	lower := func(quota, period float64) {
		if quota > 0 && period > 0 {
			limit = min(limit, quota/period)
		}
	}
	for _, line := range strings.Split(string(groups), "\n") {
		id, rest, _ := strings.Cut(line, ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		for dir := path.Join("/", group); ; dir = path.Dir(dir) {
			if id == "0" && controllers == "" {
				quota, period, _ := strings.Cut(read("sys/fs/cgroup", dir, "cpu.max"), " ")
				lower(number(quota), number(period))
			} else if strings.Contains(","+controllers+",", ",cpu,") {
				for _, mount := range []string{"cpu", controllers} {
					lower(number(read("sys/fs/cgroup", mount, dir, "cpu.cfs_quota_us")), number(read("sys/fs/cgroup", mount, dir, "cpu.cfs_period_us")))
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}
