package hub

import (
	"fmt"
	"os"
	"strings"
)

// processStart returns when a process started, in clock ticks since the system did: field 22 of /proc/PID/stat.
func processStart(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "-"
	}
	// The second field is the program's name in parentheses and may hold spaces.
	s := string(data)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 20 {
		return "-"
	}
	return fields[19]
}
