package semaphore

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

// File is a lock file, on any file system, and how its lock is taken. Only Path is needed.
//
// Of all that take the lock at once exactly one gets it, also when it is stale and all of them want to replace it: on
// one host, and on a mount of lockfs on all hosts. Programs that do not use this package take part: creation is
// exclusive for them too, but between the moment in which they find a lock stale and that in which they remove it only
// a mount of lockfs keeps them from removing a new one.
//
// Whether a lock is stale is judged on the clock of this host and with StaleTimeout. A mount of lockfs judges by
// itself, on the cluster's clock and with the timeout that its rules set.
type File struct {
	Path          string
	Tag           string        // for people
	PID           int           // of the holder; 0: this process
	StaleTimeout  time.Duration // 0: DefaultStaleTimeout
	RetryInterval time.Duration // 0: DefaultRetryInterval; counts only where nothing tells that the lock has changed
}

// HeldError is an acquisition of a lock that somebody has.
type HeldError struct {
	Path string
	Lock *Lock
}

// Error says who has it.
func (e *HeldError) Error() string {
	tag := ""
	if e.Lock.Tag != "" {
		tag = " (" + lockfact.HolderName(e.Lock.Tag) + ")"
	}
	return fmt.Sprintf("%s is held by process %d%s since %s", e.Path, e.Lock.PID, tag, e.Lock.Time().Format(time.RFC3339))
}

// MalformedError is a file that is no valid lock. It may be one that is being written, so it counts as held, and is
// never stale.
type MalformedError struct {
	Path string
	Err  error
}

// Error says what is wrong with it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("%s is not a valid lock: %v", e.Path, e.Err)
}

// Unwrap is what is wrong with it.
func (e *MalformedError) Unwrap() error { return e.Err }

// TimeoutError is an acquisition that was given up. It wraps the error of the context, and why the lock was not taken.
type TimeoutError struct{ Context, Last error }

// Error says who has the lock.
func (e *TimeoutError) Error() string { return fmt.Sprintf("%v: %v", e.Context, e.Last) }

// Unwrap gives both.
func (e *TimeoutError) Unwrap() []error { return []error{e.Context, e.Last} }

// LostError is a lock that its holder has no longer: somebody removed, replaced or overwrote it.
type LostError = lockfile.LostError

// ErrChanged is a lock that became another one while it was dealt with, again and again.
var ErrChanged = lockfile.ErrChanged

// Blocks reports whether an error of TryAcquire means that somebody has the lock.
func Blocks(err error) bool {
	var held *HeldError
	var malformed *MalformedError
	return errors.As(err, &held) || errors.As(err, &malformed) || errors.Is(err, ErrChanged)
}

// TryAcquire takes the lock if nobody has it or it is stale ("Acquiring a Lock"). It does not wait: the error is a
// [HeldError] or a [MalformedError] then. The file is complete and on disk from its first moment.
func (f File) TryAcquire(ctx context.Context) (*Held, error) {
	var lock *Lock
	held, err := lockfile.Take(ctx, f.Path, FileMode, f.judge, func() ([]byte, error) {
		lock = New(f.Tag, time.Now())
		if f.PID != 0 {
			lock.PID = f.PID
		}
		return lock.Render()
	})
	if err != nil {
		return nil, f.busy(err)
	}
	return &Held{Held: held, Lock: *lock, staleTimeout: f.staleTimeout()}, nil
}

// Acquire is TryAcquire until the lock is taken ("Blocking Acquisition") or ctx ends, which is a [TimeoutError].
// It tries once at least.
func (f File) Acquire(ctx context.Context) (*Held, error) {
	var held *Held
	var last error
	err := lockfile.Wait(ctx, f.Path, f.retryInterval(), func() (time.Time, bool) {
		held, last = f.TryAcquire(context.WithoutCancel(ctx))
		return f.staleAt(last), Blocks(last)
	})
	if err != nil {
		return nil, &TimeoutError{Context: err, Last: last}
	}
	return held, last
}

// Release removes the lock that a process has ("Releasing a Lock"), of which this one knows no more than its pid. The
// error is fs.ErrNotExist if there is no lock, and a [HeldError] if mine says that it is not this one, unless it is
// stale.
func (f File) Release(ctx context.Context, mine func(*Lock) bool) (*Lock, error) {
	var found *Lock
	err := lockfile.RemoveIf(ctx, f.Path, func(content []byte, opened *os.File) error {
		var err error
		if found, err = read(content, opened); err == nil && mine(found) {
			return nil
		}
		return f.judge(content, opened)
	})
	return found, f.busy(err)
}

// Read reads the lock, and tells whether it is stale. The error is fs.ErrNotExist if there is none, and a
// [MalformedError].
func (f File) Read() (lock *Lock, stale bool, err error) {
	opened, content, err := lockfile.Open(f.Path)
	if err != nil {
		return nil, false, lockfile.Gone(err)
	}
	defer func() { _ = opened.Close() }()
	if lock, err = read(content, opened); err != nil {
		return nil, false, &MalformedError{f.Path, err}
	}
	return lock, f.stale(lock, opened), nil
}

// read reads the lock in what was read of a file.
func read(content []byte, opened *os.File) (*Lock, error) {
	if err := lockfile.CheckSize(content, opened); err != nil {
		return nil, err
	}
	return Parse(content)
}

// judge answers nil for a lock that is stale.
func (f File) judge(content []byte, opened *os.File) error {
	lock, err := read(content, opened)
	switch {
	case err != nil:
		return &MalformedError{f.Path, err}
	case !f.stale(lock, opened):
		return &HeldError{f.Path, lock}
	}
	return nil
}

// busy names the holder of a lock that this host takes for stale, and a mount of lockfs does not.
func (f File) busy(err error) error {
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	lock, _, unread := f.Read()
	if unread != nil {
		return err
	}
	return &HeldError{f.Path, lock}
}

func (f File) stale(l *Lock, opened *os.File) bool {
	if stale, known := lockfile.Judged(opened, lockfact.Semaphore); known {
		return stale
	}
	return l.Stale(time.Now(), f.staleTimeout())
}

// staleAt is when what blocks goes stale, if it ever does.
func (f File) staleAt(blocks error) time.Time {
	var held *HeldError
	if !errors.As(blocks, &held) {
		return time.Time{}
	}
	return lockfile.StaleAt(f.Path, held.Lock.staleSince(f.staleTimeout()))
}

func (f File) staleTimeout() time.Duration {
	if f.StaleTimeout != 0 {
		return f.StaleTimeout
	}
	return DefaultStaleTimeout
}

func (f File) retryInterval() time.Duration {
	if f.RetryInterval != 0 {
		return f.RetryInterval
	}
	return DefaultRetryInterval
}
