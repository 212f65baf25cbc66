package par

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// nodes returns the processors that this process may use, by NUMA node: what its affinity mask and its cpuset, which the
// kernel takes the mask within, leave of each node. Nodes without any, of memory only or forbidden, are left out. nil means
// that nobody knows; root is the file system's.
func nodes(root fs.FS) [][]int {
	const folder = "sys/devices/system/node"
	status, _ := fs.ReadFile(root, "proc/self/status")
	_, rest, _ := strings.Cut(string(status), "\nCpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	allowed := numbers(line)
	online, _ := fs.ReadFile(root, path.Join(folder, "online"))
	var all [][]int
	for _, node := range numbers(string(online)) {
		list, err := fs.ReadFile(root, path.Join(folder, "node"+strconv.Itoa(node), "cpulist"))
		if err != nil {
			return nil
		}
		cpus := slices.DeleteFunc(numbers(string(list)), func(cpu int) bool {
			_, ok := slices.BinarySearch(allowed, cpu)
			return !ok
		})
		if len(cpus) > 0 {
			all = append(all, cpus)
		}
	}
	return all
}

// maxNumber bounds a processor's number, as the kernel does.
const maxNumber = 1 << 13

// numbers reads a list in the kernel's form, such as "0-3,8", and returns it in order; nil if it is none.
func numbers(list string) []int {
	var all []int
	for _, part := range strings.Split(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || lo < 0 || hi < lo || hi >= maxNumber {
			return nil
		}
		for n := lo; n <= hi; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// divide places n workers on nodes, as many on each as is its share of the processors, and returns the nodes that have some
// and the first worker of each, with n in the end. On a single node, or where nothing is known of them, the processors are
// nil: nobody has to be placed.
func divide(n int, nodes [][]int) (used [][]int, first []int) {
	total := 0
	for _, cpus := range nodes {
		total += len(cpus)
	}
	before, at := 0, 0
	for _, cpus := range nodes {
		before += len(cpus)
		if end := (2*n*before + total) / (2 * total); end > at {
			used, first = append(used, cpus), append(first, at)
			at = end
		}
	}
	if len(used) < 2 {
		return [][]int{nil}, []int{0, n}
	}
	return used, append(first, n)
}
