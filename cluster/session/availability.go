package session

import (
	"log/slog"
	"sync"
	"time"
)

// availability knows that the cluster does not answer: a call has asked for its whole time, and nothing that anybody asked was
// answered meanwhile. It lasts until something is, which keepalives and the cancels of what was given up go on to ask. Calls
// fail at once for so long. The kernel lets one program at a time create or remove in a directory: did each
// wait for its own time to be over, the last one would wait for all of them.
//
// Commands need a disk of each voter of a majority, other questions its word only. So that commands are not answered
// may be told of them alone.
//
// There is no clock in it: whoever was stopped, or slept, has asked nothing meanwhile.
type availability struct {
	mu          sync.Mutex
	answers     [2]uint64 // so far, by what was asked
	unavailable [2]bool
}

// requestKind is what a call needs an answer to.
type requestKind int

const (
	anyRequest requestKind = iota
	commandRequest
)

// replies answers how much was answered so far.
func (a *availability) replies() [2]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers
}

// recordReply is told of each answer that a majority stands behind. It answers whether that ends a silence.
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

// markUnavailable is told of a call whose time is up, and how much had been answered when it began. It answers whether that begins a
// silence.
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

// failureWarning is for how long the leader has not answered a question that a mount repeats when the mount logs that.
const failureWarning = 5 * time.Second

// failures has a question that a mount repeats logged once if the leader does not answer it for long, and once more when it does.
type failures struct {
	what   string // the question is about
	logger *slog.Logger

	since    time.Time // zero: the last attempt has not failed
	isLogged bool
}

// note is for an attempt that has failed.
func (f *failures) note(err error) {
	if f.since.IsZero() {
		f.since = time.Now()
	}
	if after := time.Since(f.since); !f.isLogged && after >= failureWarning {
		f.isLogged = true
		f.logger.Warn("the leader does not answer a question of this mount; it is asked again", "about", f.what, "for", after.Round(time.Millisecond), "error", err)
	}
}

// end is for an attempt that was answered.
func (f *failures) end() {
	if f.isLogged {
		f.logger.Info("the leader answers a question of this mount again", "about", f.what, "after", time.Since(f.since).Round(time.Millisecond))
	}
	f.since, f.isLogged = time.Time{}, false
}
