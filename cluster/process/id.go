package process

import (
	"errors"
	"fmt"
)

// ID identifies a process during one boot: a pid is reused, but not with the same start.
type ID struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks from boot to its start (proc_pid_stat(5): starttime)
}

// ErrUnknown is for a process that does not exist, or cannot be seen from here.
var ErrUnknown = errors.New("no process that can be seen from here")

// errEnded is for a process that has surely ended.
var errEnded = fmt.Errorf("%w: it has ended", ErrUnknown)

// Relative is a process with its process group; 0: it cannot be seen from here.
type Relative struct {
	ID
	Group int
}
