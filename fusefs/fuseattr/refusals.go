package fuseattr

import (
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"lockfs/raftstore/storepb"
)

const (
	// refusalPause is the pause between log messages with the same reason: a program may repeat its request.
	refusalPause = time.Minute
	// knownRefusals limits the remembered reasons.
	knownRefusals = 1000
)

// refusals are the recently logged reasons.
var refusals = noted{until: make(map[string]time.Time)}

type noted struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// exceedsBudget reports whether a code means a full budget or limit.
func exceedsBudget(code storepb.Code) bool {
	switch code {
	case storepb.Code_NO_LOCKS, storepb.Code_QUOTA, storepb.Code_NO_SPACE, storepb.Code_TOO_MANY_REQUESTS:
		return true
	}
	return false
}

// LogRefusal logs which budget has no room for a request, each reason once a minute: the program gets only an
// error number.
func LogRefusal(logger *slog.Logger, errno syscall.Errno, reason string) {
	if refusals.isNew(reason) {
		logger.Warn("operation refused", "errno", errno, "reason", reason)
	}
}

// isNew reports whether to log a reason now.
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
