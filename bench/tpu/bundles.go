package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kernel is a custom call of a program with what its machine code takes.
type kernel struct {
	Name      string // of the instruction
	Bundles   int64  // instructions of the machine, each for all units at once; loops multiplied by their trips
	Attention bool   // or a norm
}

// dump makes libtpu write machine code to a folder.
func dump(dir string) string {
	return "LIBTPU_INIT_ARGS=--xla_jf_dump_to=" + dir + " --xla_jf_dump_llo_text=true --xla_jf_dump_llo_pass_label_regex=final_bundles"
}

var (
	call   = regexp.MustCompile(`%([\w.-]+) = .*custom_call_target="tpu_custom_call".*"body":"([^"]*)"`)
	bounds = regexp.MustCompile(`iteration_bounds = array<i64: ([\d, ]*)>`)
	bundle = regexp.MustCompile(`^\s*(?:0x[0-9a-f]+|0)\s+([A-Z]{2})?\s*:\s*([> ]*)\{(\})?`)
	trips  = regexp.MustCompile(`, (\d+) /\* loop exit test`)
)

// kernels counts the bundles of each kernel of the program whose machine code is in a folder. The compiler writes that of
// equal kernels once.
func kernels(dir string) ([]kernel, error) {
	all, err := glob(dir, "*-TLP-hlo.txt")
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: %d programs, expected one", dir, len(all))
	}
	b, err := os.ReadFile(all[0])
	if err != nil {
		return nil, err
	}
	var list []kernel
	var bodies []string
	counted := map[string]int64{} // by body
	for line := range strings.Lines(string(b)) {
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		body, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", m[1], err)
		}
		list = append(list, kernel{Name: m[1], Attention: strings.Contains(string(body), "tpu.matmul")})
		bodies = append(bodies, string(body))
		code, err := glob(dir, "*-"+m[1]+"-*-final_bundles.txt")
		if err != nil {
			return nil, err
		}
		if len(code) == 0 {
			continue
		}
		f, err := os.Open(code[0])
		if err != nil {
			return nil, err
		}
		n, err := count(f, grid(string(body)))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", m[1], err)
		}
		counted[string(body)] = n
	}
	for i, body := range bodies {
		n, ok := counted[body]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no machine code", list[i].Name)
		}
		list[i].Bundles = n
	}
	return list, nil
}

func glob(dir, pattern string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	return slices.DeleteFunc(all, func(p string) bool { return strings.Contains(p, "schedule-analysis") }), err
}

// grid is the number of steps of a kernel's grid.
func grid(body string) int64 {
	n := int64(1)
	if m := bounds.FindStringSubmatch(body); m != nil {
		for _, s := range strings.Split(m[1], ", ") {
			v, _ := strconv.ParseInt(s, 10, 64)
			n *= v
		}
	}
	return n
}

// loop is a loop of machine code while its lines are read.
type loop struct{ bundles, trips int64 }

// count adds up the bundles of a kernel. A line is a bundle, with as many > as there are loops around it; LB begins a loop,
// which somewhere compares its index with the number of its trips. The grid's loop makes two more trips than the grid has
// steps, to fetch before the first and to store after the last, which skip what the kernel does and are left out.
// Conditional code counts as if it ran always.
func count(code io.Reader, steps int64) (int64, error) {
	loops := []loop{{trips: 1}}
	leave := func(depth int) error {
		for len(loops) > depth+1 {
			l := loops[len(loops)-1]
			loops = loops[:len(loops)-1]
			if l.trips == 0 {
				return fmt.Errorf("a loop without an end in its machine code")
			}
			if len(loops) == 1 && l.trips == steps+2 {
				l.trips = steps
			}
			loops[len(loops)-1].bundles += l.bundles * l.trips
		}
		return nil
	}
	lines := bufio.NewScanner(code)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := bundle.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		depth := strings.Count(m[2], ">")
		if m[3] != "" && m[1] == "" { // an empty bundle, which has no mark of where it lies
			depth = len(loops) - 1
		}
		begins := m[1] == "LB" && depth > 0
		if begins {
			depth--
		}
		if err := leave(depth); err != nil {
			return 0, err
		}
		if begins {
			loops = append(loops, loop{})
		}
		l := &loops[len(loops)-1]
		l.bundles++
		if m := trips.FindStringSubmatch(lines.Text()); m != nil {
			l.trips, _ = strconv.ParseInt(m[1], 10, 64)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if err := leave(0); err != nil {
		return 0, err
	}
	if loops[0].bundles == 0 {
		return 0, fmt.Errorf("no machine code")
	}
	return loops[0].bundles, nil
}
