package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// chipFiles are what a process has open that uses a TPU: the chips themselves, or the lock that libtpu takes.
var chipFiles = []string{"/dev/accel", "/dev/vfio/", "/tmp/libtpu_lockfile"}

// holder names another process that has a TPU, such as "process 4711 (python3)", or "" if there is none that this user
// may see. Only Linux tells.
func (f *Finder) holder() string {
	proc := filepath.Join(f.Root, "proc")
	links, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !isChip(target) {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			return fmt.Sprintf("process %d", pid)
		}
		return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
	}
	return ""
}

// isChip takes /dev/accel0 and /dev/vfio/3, but not /dev/vfio/vfio, which everybody may open.
func isChip(path string) bool {
	for _, c := range chipFiles {
		if rest, ok := strings.CutPrefix(path, c); ok && (rest == "" || rest[0] >= '0' && rest[0] <= '9') {
			return true
		}
	}
	return false
}

// explain says who has the chips when that is why a TPU can't be used: libtpu itself names a lock file at best.
func (f *Finder) explain(name string, err error) error {
	if err == nil || name != "tpu" {
		return err
	}
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"lockfile", "in use", "busy"} {
		if !strings.Contains(text, sign) {
			continue
		}
		if who := f.holder(); who != "" {
			return fmt.Errorf("tpu: in use by %s: %w", who, err)
		}
		return fmt.Errorf("tpu: in use by another process: %w", err)
	}
	return err
}
