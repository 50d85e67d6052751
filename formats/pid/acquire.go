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

// FileMode is the mode of new lock files.
const FileMode = 0o644

// HeldError reports a lock with a live process.
type HeldError struct {
	Path string
	Lock *Lock // nil: not a pid file, perhaps one being written
	Err  error // the problem with such a file
}

// Error names the holder.
func (e *HeldError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s is not a valid lock: %v", e.Path, e.Err)
	case e.Lock == nil:
		return e.Path + " is held"
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.Lock.PID)
}

// LostError reports a lost lock: another program removed, replaced or overwrote it.
type LostError = lockfile.LostError

// ErrChanged reports a lock that changed again and again during an operation.
var ErrChanged = lockfile.ErrChanged

// Held is a lock acquired by this process. It has the methods
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it exists; a LostError: it does not; any other error is no evidence
//	Token() string                 // the fencing token; empty outside of mounts of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held = lockfile.Held

// Hold writes this process into a lock file, and replaces the lock of an ended process. Of several concurrent
// callers, one acquires the lock. The file does not name the host. So the lock is for one host and one pid
// namespace, except on a mount of lockfs. Hold tries at least once, and waits until ctx ends; then the error
// is a [HeldError].
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
	processInterval = time.Second // nothing reports the end of a process
)

// nextLook returns a time soon, unless a mount of lockfs watches processes and removes their locks.
func nextLook(path string) time.Time { return lockfile.StaleAt(path, time.Now().Add(processInterval)) }

// judge returns nil for the lock of an ended process.
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
