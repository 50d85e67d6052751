package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Dying tells whether a process is being killed or is a zombie, as of which one thread may be left for long: inside the
// kernel, where a signal does not reach it.
func Dying(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false // it is not shown here, or it has ended
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return true
			}
		case "SigPnd":
			pending, err := strconv.ParseUint(value, 16, 64)
			return err == nil && pending&(1<<(unix.SIGKILL-1)) != 0
		}
	}
	return false
}
