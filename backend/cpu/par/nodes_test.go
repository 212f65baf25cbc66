package par

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// machine is a file system with the given nodes' processors and those that the process may use.
func machine(online, allowed string, cpulists ...string) fstest.MapFS {
	root := fstest.MapFS{
		"proc/self/status":               {Data: []byte("Name:\tgesso\nCpus_allowed:\tff\nCpus_allowed_list:\t" + allowed + "\nMems_allowed_list:\t0\n")},
		"sys/devices/system/node/online": {Data: []byte(online + "\n")},
	}
	for i, list := range cpulists {
		root[fmt.Sprintf("sys/devices/system/node/node%d/cpulist", i)] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return root
}

func TestNodes(t *testing.T) {
	for name, c := range map[string]struct {
		root fstest.MapFS
		want [][]int
	}{
		"no files":                {fstest.MapFS{}, nil},
		"one node":                {machine("0", "0-1", "0-1"), [][]int{{0, 1}}},
		"two nodes":               {machine("0-1", "0-7", "0-3", "4-7"), [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
		"with their siblings":     {machine("0-1", "0-7", "0-1,4-5", "2-3,6-7"), [][]int{{0, 1, 4, 5}, {2, 3, 6, 7}}},
		"part of both":            {machine("0-1", "1,6-7", "0-3", "4-7"), [][]int{{1}, {6, 7}}},
		"kept on the second":      {machine("0-1", "4-7", "0-3", "4-7"), [][]int{{4, 5, 6, 7}}},
		"a node of memory only":   {machine("0-2", "0-7", "0-3", "", "4-7"), [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
		"a node that isn't there": {machine("0,2", "0-7", "0-3", "", "4-7"), [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
		"no list of a node":       {machine("0-1", "0-7", "0-3"), nil},
		"nonsense":                {machine("zero", "0-7", "0-7"), nil},
		"nothing allowed":         {machine("0-1", "", "0-3", "4-7"), nil},
	} {
		if got := nodes(c.root); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Whatever the files hold, nodes have processors, each once and in order.
func FuzzNodes(f *testing.F) {
	f.Add("0-1", "0-7", "0-3", "4-7")
	f.Add("0,1", "0,2-99999999999", "3-1", "-")
	f.Fuzz(func(t *testing.T, online, allowed, a, b string) {
		for _, cpus := range nodes(machine(online, allowed, a, b)) {
			if len(cpus) == 0 || !slices.IsSorted(cpus) || len(slices.Compact(slices.Clone(cpus))) != len(cpus) || cpus[0] < 0 {
				t.Errorf("processors %v", cpus)
			}
		}
	})
}

func TestDivide(t *testing.T) {
	a, b, c := []int{0, 1, 2, 3}, []int{4, 5, 6, 7}, []int{8, 9}
	for _, x := range []struct {
		n     int
		nodes [][]int
		used  [][]int
		first []int
	}{
		{4, nil, [][]int{nil}, []int{0, 4}},
		{4, [][]int{a}, [][]int{nil}, []int{0, 4}},
		{8, [][]int{a, b}, [][]int{a, b}, []int{0, 4, 8}},
		{3, [][]int{a, b}, [][]int{a, b}, []int{0, 2, 3}},
		{20, [][]int{a, b, c}, [][]int{a, b, c}, []int{0, 8, 16, 20}},
		{2, [][]int{a, b, c}, [][]int{a, b}, []int{0, 1, 2}},
		{1, [][]int{a, b}, [][]int{nil}, []int{0, 1}},
	} {
		if used, first := divide(x.n, x.nodes); !reflect.DeepEqual(used, x.used) || !reflect.DeepEqual(first, x.first) {
			t.Errorf("%d workers on %v: %v from %v on, want %v from %v on", x.n, x.nodes, used, first, x.used, x.first)
		}
	}
}

// onNodes is a pool on as many processors as the nodes have in all, where nobody is really placed.
func onNodes(t *testing.T, processors ...int) *Pool {
	var all [][]int
	n := 0
	for _, count := range processors {
		var cpus []int
		for range count {
			cpus = append(cpus, n)
			n++
		}
		all = append(all, cpus)
	}
	p := newPool(n, all, func([]int) {})
	t.Cleanup(p.Close)
	return p
}

// TestWorkersArePlaced: all workers, and who enters the pool, on their node's processors, where there are several.
func TestWorkersArePlaced(t *testing.T) {
	for _, nodes := range [][][]int{nil, {{0, 1, 2, 3}}, {{0, 1}, {5, 7}}} {
		var mu sync.Mutex
		var placed []string
		var all sync.WaitGroup
		if len(nodes) > 1 {
			all.Add(4)
		}
		p := newPool(4, nodes, func(cpus []int) {
			mu.Lock()
			defer mu.Unlock()
			placed = append(placed, fmt.Sprint(cpus))
			all.Done()
		})
		done := make(chan bool)
		go func() {
			p.Enter()
			close(done)
		}()
		<-done
		all.Wait()
		p.Close()
		slices.Sort(placed)
		want := "[]"
		if len(nodes) > 1 {
			want = "[[0 1] [0 1] [5 7] [5 7]]"
		}
		if got := "[" + strings.Join(placed, " ") + "]"; got != want {
			t.Errorf("on %v: placed on %s, want %s", nodes, got, want)
		}
		if p.Nodes() != max(1, len(nodes)) {
			t.Errorf("on %v: %d nodes", nodes, p.Nodes())
		}
	}
}

// TestNodesBeginInTheirShares: all workers begin in the part of a job that belongs to their node.
func TestNodesBeginInTheirShares(t *testing.T) {
	for _, processors := range [][]int{{2, 2}, {3, 1}, {1, 2, 1}, {4}} {
		p := onNodes(t, processors...)
		const n, grain = 83, 2 // 42 pieces
		starts := make([]int, p.Workers())
		taken := make([]atomic.Bool, p.Workers())
		var here sync.WaitGroup
		here.Add(p.Workers())
		p.For(n, grain, func(w, lo, _ int) {
			if taken[w].CompareAndSwap(false, true) {
				starts[w] = lo / grain
				here.Done()
				here.Wait() // for the others
			}
		})
		w, before := 0, 0
		for node, count := range processors {
			from, to := (42*before+p.Workers()-1)/p.Workers(), (42*(before+count)+p.Workers()-1)/p.Workers()
			before += count
			for range count {
				if s := starts[w]; s < from || s >= to {
					t.Errorf("nodes of %v: worker %d of node %d begins with piece %d, not among %d to %d", processors, w, node, s, from, to-1)
				}
				w++
			}
		}
	}
}

// TestNodesHelpAtTheEnd: who has done its node's share goes on with another's, and not before.
func TestNodesHelpAtTheEnd(t *testing.T) {
	p := onNodes(t, 1, 1)
	const n = 40
	for _, slow := range []int{0, 1} {
		begun, rest := make(chan bool), make(chan bool)
		var done atomic.Int32
		var order [2][]int // of pieces, by worker
		p.For(n, 1, func(w, lo, _ int) {
			order[w] = append(order[w], lo)
			if w == slow {
				close(begun)
				<-rest // until the other has done everything else
				return
			}
			<-begun
			if done.Add(1) == n-1 {
				close(rest)
			}
		})
		quick := 1 - slow
		var want []int
		for i := range n / 2 {
			want = append(want, quick*n/2+i)
		}
		for i := 1; i < n/2; i++ {
			want = append(want, slow*n/2+i)
		}
		if !slices.Equal(order[quick], want) || !slices.Equal(order[slow], []int{slow * n / 2}) {
			t.Errorf("worker %d waits: the workers did %v", slow, order)
		}
	}
}
