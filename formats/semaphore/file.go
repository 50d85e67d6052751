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

// File is a lock file on any file system, with the parameters of an acquisition. Only Path is required.
//
// Of several processes acquiring the lock at once exactly one succeeds, even if it is stale and all try to
// replace it. This holds on one host, and across hosts on a lockfs mount. Programs without this package take
// part, because their creation is exclusive too. But between finding a stale lock and removing it, only a
// lockfs mount keeps them from removing a new one.
//
// A lock becomes stale by this host's clock and StaleTimeout. On a lockfs mount, the cluster's clock and the
// timeout of its rules decide.
type File struct {
	Path          string
	Tag           string        // for readers
	PID           int           // of the holder; 0: this process
	StaleTimeout  time.Duration // 0: DefaultStaleTimeout
	RetryInterval time.Duration // 0: DefaultRetryInterval; unused if the file system reports changes
}

// HeldError is a lock held by another process.
type HeldError struct {
	Path string
	Lock *Lock
}

// Error names the holder.
func (e *HeldError) Error() string {
	tag := ""
	if e.Lock.Tag != "" {
		tag = " (" + lockfact.HolderName(e.Lock.Tag) + ")"
	}
	return fmt.Sprintf("%s is held by process %d%s since %s", e.Path, e.Lock.PID, tag, e.Lock.Time().Format(time.RFC3339))
}

// MalformedError is a file without a valid lock. Another program may be writing it, so it counts as
// held and never becomes stale.
type MalformedError struct {
	Path string
	Err  error
}

// Error returns the path and the fault.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("%s is not a valid lock: %v", e.Path, e.Err)
}

// Unwrap returns the fault.
func (e *MalformedError) Unwrap() error { return e.Err }

// TimeoutError is an abandoned acquisition. It wraps the error of the context and the last reason.
type TimeoutError struct{ Context, Last error }

// Error returns both.
func (e *TimeoutError) Error() string { return fmt.Sprintf("%v: %v", e.Context, e.Last) }

// Unwrap returns both.
func (e *TimeoutError) Unwrap() []error { return []error{e.Context, e.Last} }

// LostError is a lock removed, replaced or overwritten by another program.
type LostError = lockfile.LostError

// ErrChanged is a lock changed during each of several attempts.
var ErrChanged = lockfile.ErrChanged

// Blocks reports whether an error of TryAcquire means that the lock is held.
func Blocks(err error) bool {
	var held *HeldError
	var malformed *MalformedError
	return errors.As(err, &held) || errors.As(err, &malformed) || errors.Is(err, ErrChanged)
}

// TryAcquire acquires the lock if it is free or stale ("Acquiring a Lock"). It does not wait: the error is a
// [HeldError] or a [MalformedError]. The file is complete and on disk from its first moment.
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

// Acquire calls TryAcquire, at least once, until it succeeds ("Blocking Acquisition") or ctx ends. The latter
// is a [TimeoutError].
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

// Release removes a lock of another process ("Releasing a Lock"). mine reports whether the lock is the
// expected one. The error is fs.ErrNotExist if there is no lock, and a [HeldError] if mine refuses a lock
// that is not stale.
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

// Read reads the lock and reports whether it is stale. The error is fs.ErrNotExist if there is none, or a
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

// read parses the content of a file.
func read(content []byte, opened *os.File) (*Lock, error) {
	if err := lockfile.CheckSize(content, opened); err != nil {
		return nil, err
	}
	return Parse(content)
}

// judge returns nil for a stale lock.
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

// busy names the holder of a lock that is stale for this host but not for the lockfs mount.
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

// staleAt returns the time at which the lock becomes stale; zero if unknown.
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
