package tower

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// BlockedError is a lock held by another request.
type BlockedError struct {
	Lock  *Lock
	Stale bool      // and the request did not force it
	At    time.Time // time of the check
	Err   error     // the file system's refusal of a steal, if any
}

// Error names the holder and the next step.
func (e *BlockedError) Error() string {
	l := e.Lock
	heartbeat := l.Suspicion(e.At)
	if heartbeat == "" {
		heartbeat = "last heartbeat " + stamp.Ago(e.At.Sub(l.LastHeartbeatAt).Truncate(time.Second))
	}
	held := fmt.Sprintf("lock %s is held by request %q (%q on %q), %s", l.LockName, l.RequestID, l.Actor, l.HostID, heartbeat)
	switch {
	case e.Err != nil:
		return held + "; by the file system's clock it is not stale: wait for it"
	case e.Stale:
		return held + fmt.Sprintf(", longer ago than its ttl of %d s; if that holder is gone, use --force-lock", l.TTLSeconds)
	}
	return held + "; wait until it is released"
}

// Unwrap returns the file system's refusal.
func (e *BlockedError) Unwrap() error { return e.Err }

// Response returns a [Blocked] (section 4.4) or a [BlockedStale] (section 6.3).
func (e *BlockedError) Response() any {
	if e.Stale {
		return e.Lock.BlockedStale(e.At)
	}
	return e.Lock.Blocked()
}

// InvalidError is a file with a lock's name but without a valid lock (section 12.2). It blocks, because
// another program may be writing it.
type InvalidError struct {
	LockName string
	Path     string
	Err      error
}

// invalidAdvice also works on a mount, where a guard may protect the file as the live lock of another host.
const invalidAdvice = "look at it, and remove it if nobody uses it (on a mount of lockfs with `lockfs rm --force`)"

// Error returns the fault and the next step.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("lock %s: %s is not a valid lock (%v); %s", e.LockName, e.Path, e.Err, invalidAdvice)
}

// Unwrap returns the fault.
func (e *InvalidError) Unwrap() error { return e.Err }

// BlockedInvalid is the response to a request for an invalid lock. The specification has none; this
// one has the form of sections 4.4 and 6.3.
type BlockedInvalid struct {
	Error      string `json:"error"`
	LockName   string `json:"lock_name"`
	LockPath   string `json:"lock_path"`
	Problem    string `json:"problem"`
	Suggestion string `json:"suggestion"`
}

// Response describes the file to the blocked request.
func (e *InvalidError) Response() any {
	return BlockedInvalid{
		Error: "lock_invalid", LockName: e.LockName, LockPath: e.Path, Problem: e.Err.Error(),
		Suggestion: strings.ToUpper(invalidAdvice[:1]) + invalidAdvice[1:],
	}
}

// LostError means that the request does not hold the lock, or no longer.
type LostError struct {
	LockName  string
	RequestID string // the request without the lock
	Lock      *Lock  // the lock with this name now; nil: none, or unreadable
	Err       error  // the reason if it is unreadable; an InvalidError: the file is no lock any more
}

// Error names the holder.
func (e *LostError) Error() string {
	text := fmt.Sprintf("request %s does not have the lock %s: ", lockfact.HolderName(e.RequestID), e.LockName)
	var invalid *InvalidError
	switch {
	case e.Lock != nil:
		return text + fmt.Sprintf("request %q holds it (%q on %q)", e.Lock.RequestID, e.Lock.Actor, e.Lock.HostID)
	case errors.As(e.Err, &invalid):
		return text + fmt.Sprintf("%s is not a valid lock any more (%v)", invalid.Path, invalid.Err)
	case e.Err != nil:
		return text + "it could be neither renewed nor read for longer than its ttl: " + e.Err.Error()
	}
	return text + "there is none"
}

// Unwrap returns the reason if the lock is unreadable.
func (e *LostError) Unwrap() error { return e.Err }
