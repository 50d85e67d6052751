package kernel

import (
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"lockfs/raftstore/storepb"
)

const (
	// refusalPause is how long the log has one reason of a refusal once: a program may ask for the same again and again.
	refusalPause = time.Minute
	// knownRefusals bounds how many reasons are remembered.
	knownRefusals = 1000
)

// refusals are the reasons that the log has had a short time ago.
var refusals = noted{until: make(map[string]time.Time)}

type noted struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// exceedsBudget reports whether a code says that a budget or a limit has no room.
func exceedsBudget(code storepb.Code) bool {
	switch code {
	case storepb.Code_NO_LOCKS, storepb.Code_QUOTA, storepb.Code_NO_SPACE, storepb.Code_TOO_MANY_REQUESTS:
		return true
	}
	return false
}

// LogRefusal logs why a budget has no room for a request of the kernel, each reason once a minute: the program gets an error number only.
func LogRefusal(logger *slog.Logger, errno syscall.Errno, reason string) {
	if refusals.isNew(reason) {
		logger.Warn("operation refused", "errno", errno, "reason", reason)
	}
}

// isNew reports whether the log is to have a reason now.
func (n *noted) isNew(reason string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if now.Before(n.until[reason]) {
		return false
	}
	if len(n.until) >= knownRefusals {
		maps.DeleteFunc(n.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	}
	if len(n.until) >= knownRefusals {
		return false
	}
	n.until[reason] = now.Add(refusalPause)
	return true
}
