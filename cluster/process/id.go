package process

import (
	"errors"
	"fmt"
)

// ID is one process, and never another one's again during one boot: a pid comes back, but not with the
// same start.
type ID struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks from boot to its start (proc_pid_stat(5): starttime)
}

// ErrUnknown is for a process that does not exist, or that cannot be seen from here.
var ErrUnknown = errors.New("no process that can be seen from here")

// errEnded is for a process that surely does not exist any more.
var errEnded = fmt.Errorf("%w: it has ended", ErrUnknown)

// Relative is a process with its process group, which is 0 if it cannot be seen from here.
type Relative struct {
	ID
	Group int
}
