package pjrt

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// OutOfMemory is the error of what didn't fit a device's memory. Sizes are in bytes; -1 is what the plugin doesn't tell.
type OutOfMemory struct {
	Device    string // such as "tpu:0"
	Program   string // its name; empty for an upload
	Arguments int64  // of the program
	Need      int64  // beside the arguments: results and intermediate values; or the upload
	InUse     int64  // of the device, at the time
	Limit     int64  // of the device

	// What would make room for the program: each stands for a calculation from the figures above.
	OffloadFits bool // with nothing on the device but the program's own arguments
	HalfFits    bool // with 16-bit numbers in place of 32-bit ones

	Doing string // "run", "compile" or "upload"
	Err   error  // the plugin's
}

// Free returns the bytes that were left, -1 if unknown.
func (e *OutOfMemory) Free() int64 {
	if e.Limit < 0 || e.InUse < 0 {
		return -1
	}
	return e.Limit - e.InUse
}

// Error is one line: what failed, what it needs, what there was, and what would fit.
func (e *OutOfMemory) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Device, e.Doing)
	if e.Program != "" {
		b.WriteString(" " + e.Program)
	}
	b.WriteString(": out of memory")
	sep := ": "
	if e.Need >= 0 {
		fmt.Fprintf(&b, "%sit needs %s", sep, amount(e.Need))
		if e.Arguments > 0 {
			fmt.Fprintf(&b, " beside %s of arguments", amount(e.Arguments))
		}
		sep = ", and "
	}
	if free := e.Free(); free >= 0 {
		fmt.Fprintf(&b, "%s%s of %s are free", sep, amount(free), amount(e.Limit))
		sep = ", and "
	}
	var fits []string
	if e.HalfFits {
		fits = append(fits, "dtype bf16")
	}
	if e.OffloadFits {
		fits = append(fits, "offload of the weights that it doesn't use")
	}
	if len(fits) > 0 {
		fmt.Fprintf(&b, "; %s would fit", strings.Join(fits, " or "))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the plugin's error.
func (e *OutOfMemory) Unwrap() error { return e.Err }

// amount writes a size for people.
func amount(n int64) string {
	switch {
	case n >= 1e8:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e5:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d bytes", n)
}

// outOfMemory puts err into words if memory is what was lacking, and returns it as it is otherwise. g is nil for an
// upload, and need is -1 before a program is compiled.
func (c *Client) outOfMemory(err error, doing string, g *graph.Graph, need int64, device int) error {
	if capi.CodeOf(err) != capi.ResourceExhausted {
		return err
	}
	e := &OutOfMemory{Device: fmt.Sprintf("%s:%d", c.o.Name, device), Doing: doing, Need: need, InUse: -1, Limit: -1, Err: err}
	if s, serr := c.devices[device].d.MemoryStats(); serr == nil {
		e.InUse, e.Limit = s.InUse, s.Limit
	}
	if e.Limit < 0 && c.family == "cpu" {
		e.InUse, e.Limit = hostMemory()
	}
	if e.Limit < 0 && c.devices[device].info.Memory > 0 {
		e.Limit = c.devices[device].info.Memory
	}
	if g == nil {
		return e
	}
	e.Program = g.Name
	var wide int64
	for _, n := range g.Inputs {
		e.Arguments += int64(n.Type.Bytes())
		if n.DType == tensor.F32 || n.DType == tensor.F64 {
			wide += int64(n.Type.Bytes())
		}
	}
	if e.Limit > 0 && e.InUse >= 0 && need >= 0 {
		e.OffloadFits = e.InUse > e.Arguments && e.Arguments+need <= e.Limit
		// Where most of what the program reads is wide, so are the weights on the device and its intermediate values.
		e.HalfFits = 2*wide > e.Arguments && e.InUse/2+need/2 <= e.Limit
	}
	return e
}

// hostMemory returns what is in use of this machine's memory, and its size; -1 where the system doesn't tell.
func hostMemory() (inUse, limit int64) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return -1, -1
	}
	kilobytes := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				kilobytes[f[0]] = n
			}
		}
	}
	total, free := kilobytes["MemTotal:"], kilobytes["MemAvailable:"]
	if total == 0 || free == 0 || free > total {
		return -1, -1
	}
	return (total - free) << 10, total << 10
}
