package pid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// FileMode is the mode to create lock files with.
const FileMode = 0o644

// HeldError is an acquisition of a lock whose process lives.
type HeldError struct {
	Path string
	Lock *Lock // nil: the file is no pid file, and may be one that is being written
	Err  error // what is wrong with such a file
}

// Error says who has it.
func (e *HeldError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s is not a valid lock: %v", e.Path, e.Err)
	case e.Lock == nil:
		return e.Path + " is held"
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.Lock.PID)
}

// LostError is a lock that its holder has no longer: somebody removed, replaced or overwrote it.
type LostError = lockfile.LostError

// ErrChanged is a lock that became another one while it was dealt with, again and again.
var ErrChanged = lockfile.ErrChanged

// Held is a lock that this process took. It has the methods
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held = lockfile.Held

// Hold writes this process into a lock file, in place of one whose process is gone; of any number of processes that
// do this at once one gets it. Where that process was is not in the file, so anywhere but on a mount of lockfs the lock
// is for the processes of one host, and one pid namespace. It waits until ctx ends; the error is a [HeldError] then.
// It tries once at least.
func Hold(ctx context.Context, path string) (*Held, error) {
	var held *Held
	var last error
	_ = lockfile.Wait(ctx, path, pollInterval, func() (time.Time, bool) {
		held, last = lockfile.Take(context.WithoutCancel(ctx), path, FileMode, judge(path), New().Render)
		if errors.Is(last, syscall.EBUSY) { // a mount of lockfs knows that the process lives
			last = &HeldError{Path: path}
		}
		var blocked *HeldError
		return nextLook(path), errors.As(last, &blocked) || errors.Is(last, ErrChanged)
	})
	return held, last
}

const (
	pollInterval    = 100 * time.Millisecond
	processInterval = time.Second // nothing tells that a process has ended
)

// nextLook is soon where nobody watches processes and removes their locks, as a mount of lockfs does.
func nextLook(path string) time.Time { return lockfile.StaleAt(path, time.Now().Add(processInterval)) }

// judge answers nil for a lock whose process is gone.
func judge(path string) lockfile.Judge {
	return func(content []byte, opened *os.File) error {
		err := lockfile.CheckSize(content, opened)
		if err != nil {
			return &HeldError{Path: path, Err: err}
		}
		lock, err := Parse(content)
		if err != nil {
			return &HeldError{Path: path, Err: err}
		}
		stale, known := lockfile.Judged(opened, lockfact.PID)
		if stale || !known && lock.Stale() {
			return nil
		}
		return &HeldError{Path: path, Lock: lock}
	}
}

// Stale reports whether this host has no such process.
func (l *Lock) Stale() bool { return lockfile.ProvablyDead(l.PID) }
