package session

import (
	"log/slog"
	"sync"
	"time"
)

// availability tracks whether the cluster answers. The cluster is unavailable after a call without a reply
// for its whole timeout, if no other call got one meanwhile. It is available again with the next reply:
// keepalives and cancellations continue to ask. Calls fail at once meanwhile. The kernel serializes creates
// and removes in a directory: with a full timeout for each, the last program would wait for all of them.
//
// Commands need a disk write on a quorum, other requests only its confirmation. So commands alone can be
// unavailable.
//
// It has no clock: a stopped or sleeping host has sent no requests meanwhile.
type availability struct {
	mu          sync.Mutex
	answers     [2]uint64 // number of replies, by kind
	unavailable [2]bool
}

type requestKind int

const (
	anyRequest requestKind = iota
	commandRequest
)

func (a *availability) replies() [2]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers
}

// recordReply counts a reply confirmed by a quorum. It reports whether the cluster was unavailable before.
func (a *availability) recordReply(what requestKind) (ends bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind := range what + 1 {
		ends = ends || a.unavailable[kind]
		a.answers[kind]++
		a.unavailable[kind] = false
	}
	return ends
}

// markUnavailable records a timeout. since is the number of replies at the begin of the call. It reports
// whether the cluster becomes unavailable with this call.
func (a *availability) markUnavailable(since [2]uint64, what requestKind) (begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind := range what + 1 {
		if a.answers[kind] == since[kind] && !a.unavailable[kind] {
			a.unavailable[kind], begins = true, true
		}
	}
	return begins
}

func (a *availability) isUnavailable(what requestKind) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unavailable[what]
}

// failureWarning is how long a repeated request has to fail before the mount logs a warning.
const failureWarning = 5 * time.Second

// failures logs once if a repeated request fails for long, and once more when it succeeds.
type failures struct {
	what   string // subject of the request
	logger *slog.Logger

	since    time.Time // zero: the last attempt succeeded
	isLogged bool
}

func (f *failures) note(err error) {
	if f.since.IsZero() {
		f.since = time.Now()
	}
	if after := time.Since(f.since); !f.isLogged && after >= failureWarning {
		f.isLogged = true
		f.logger.Warn("the leader does not answer a question of this mount; it is asked again", "about", f.what, "for", after.Round(time.Millisecond), "error", err)
	}
}

func (f *failures) end() {
	if f.isLogged {
		f.logger.Info("the leader answers a question of this mount again", "about", f.what, "after", time.Since(f.since).Round(time.Millisecond))
	}
	f.since, f.isLogged = time.Time{}, false
}
