package process

import (
	"errors"
	"fmt"
)

// ID identifies a process during one boot: the kernel reuses a pid, but not with the same start.
type ID struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks from boot to its start (proc_pid_stat(5): starttime)
}

// ErrUnknown means: the process does not exist, or is invisible from here.
var ErrUnknown = errors.New("no process that can be seen from here")

// errEnded means: the process has ended.
var errEnded = fmt.Errorf("%w: it has ended", ErrUnknown)

// Relative is a process with its process group; 0: the group is invisible from here.
type Relative struct {
	ID
	Group int
}
