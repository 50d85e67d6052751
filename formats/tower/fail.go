package tower

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// BlockedError is what Acquire gives when somebody has the lock.
type BlockedError struct {
	Lock  *Lock
	Stale bool      // and it was not forced
	At    time.Time // when that was found
	Err   error     // why the file system refused a steal, if it did
}

// Error names the holder and says what to do.
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

// Unwrap gives why the file system refused.
func (e *BlockedError) Unwrap() error { return e.Err }

// Response is a [Blocked] (section 4.4) or a [BlockedStale] (section 6.3).
func (e *BlockedError) Response() any {
	if e.Stale {
		return e.Lock.BlockedStale(e.At)
	}
	return e.Lock.Blocked()
}

// InvalidError is a file that has a lock's name and is not a valid lock (section 12.2). It blocks, for it
// may be a lock that is being written.
type InvalidError struct {
	LockName string
	Path     string
	Err      error
}

// invalidAdvice names what works on a mount too, where a file that may be another host's live lock is guarded.
const invalidAdvice = "look at it, and remove it if nobody uses it (on a mount of lockfs with `lockfs rm --force`)"

// Error says what is wrong with the file, and what to do.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("lock %s: %s is not a valid lock (%v); %s", e.LockName, e.Path, e.Err, invalidAdvice)
}

// Unwrap gives what is wrong.
func (e *InvalidError) Unwrap() error { return e.Err }

// BlockedInvalid is what a request gets that finds a file which is not a valid lock. The specification
// has no response for it; this one is like those of sections 4.4 and 6.3.
type BlockedInvalid struct {
	Error      string `json:"error"`
	LockName   string `json:"lock_name"`
	LockPath   string `json:"lock_path"`
	Problem    string `json:"problem"`
	Suggestion string `json:"suggestion"`
}

// Response describes the file to a request that it blocks.
func (e *InvalidError) Response() any {
	return BlockedInvalid{
		Error: "lock_invalid", LockName: e.LockName, LockPath: e.Path, Problem: e.Err.Error(),
		Suggestion: strings.ToUpper(invalidAdvice[:1]) + invalidAdvice[1:],
	}
}

// LostError is what a request gets that does not have the lock, or no longer.
type LostError struct {
	LockName  string
	RequestID string // that has lost it
	Lock      *Lock  // the lock that has the name now; nil: there is none, or it cannot be read
	Err       error  // why it cannot be read; an InvalidError: the file is no lock any more
}

// Error says who has the lock.
func (e *LostError) Error() string {
	text := fmt.Sprintf("request %s does not have the lock %s: ", lockfact.HolderName(e.RequestID), e.LockName)
	var invalid *InvalidError
	switch {
	case e.Lock != nil:
		return text + fmt.Sprintf("request %q has it (%q on %q)", e.Lock.RequestID, e.Lock.Actor, e.Lock.HostID)
	case errors.As(e.Err, &invalid):
		return text + fmt.Sprintf("%s is not a valid lock any more (%v)", invalid.Path, invalid.Err)
	case e.Err != nil:
		return text + "it could be neither renewed nor read for longer than its ttl: " + e.Err.Error()
	}
	return text + "there is none"
}

// Unwrap gives why the lock cannot be read.
func (e *LostError) Unwrap() error { return e.Err }
