package beads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// HeldError means that the database is locked, and the lock is not stale.
type HeldError struct{ Lock *ExclusiveLock }

// Error names the holder.
func (e *HeldError) Error() string {
	l := e.Lock
	return fmt.Sprintf("locked by %s (process %d on %s) since %s",
		lockfact.HolderName(l.Holder), l.PID, lockfact.HolderName(l.Hostname), l.StartedAt.Format(time.RFC3339))
}

// MalformedError is an invalid lock file. No program removes it ("Lock File Corruption").
type MalformedError struct{ Err error }

// Error uses the words of "Daemon Logging".
func (e *MalformedError) Error() string { return "malformed lock file: " + e.Err.Error() }

// Unwrap returns the fault.
func (e *MalformedError) Unwrap() error { return e.Err }

// ErrChanged is a lock changed during the call, or is another one.
var ErrChanged = errors.New("the lock is gone, or has another holder now")

// takeovers limits the attempts to remove a stale lock while it keeps changing.
const takeovers = 10

// Acquire writes a lock file into beadsDir and replaces a stale one. It does not wait: a [HeldError] names
// the holder; a [MalformedError] means an invalid file.
//
// The specification's examples overwrite any lock ("Multiple Writers Without Daemon"). Here, of several
// processes at once exactly one succeeds: on one host, and across hosts on a lockfs mount. The file is
// complete from its first moment, so a daemon never finds it malformed.
func Acquire(ctx context.Context, beadsDir string, lock *ExclusiveLock) error {
	content, err := lock.Render()
	if err != nil {
		return err
	}
	for range takeovers {
		if _, err := removeStale(ctx, beadsDir); err != nil {
			return err
		}
		if err := lockfile.Create(filepath.Join(beadsDir, FileName), content, FileMode); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return ErrChanged
}

const (
	pollInterval    = 100 * time.Millisecond // unused if the file system reports changes
	processInterval = time.Second            // the system does not report the end of a process; lockfs does, and removes its lock
)

// Held is an acquired lock. Its methods:
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held = lockfile.Held

// LostError is a lock removed, replaced or overwritten by another program.
type LostError = lockfile.LostError

// Hold calls Acquire, at least once, until it succeeds or ctx ends. Then the error is the last reason.
func Hold(ctx context.Context, beadsDir string, lock *ExclusiveLock) (*Held, error) {
	path := filepath.Join(beadsDir, FileName)
	var last error
	_ = lockfile.Wait(ctx, path, pollInterval, func() (time.Time, bool) {
		last = Acquire(context.WithoutCancel(ctx), beadsDir, lock)
		var held *HeldError
		again := errors.As(last, &held) || errors.Is(last, ErrChanged)
		return lockfile.StaleAt(path, time.Now().Add(processInterval)), again
	})
	if last != nil {
		return nil, last
	}
	content, err := lock.Render()
	if err != nil {
		return nil, err
	}
	return lockfile.Hold(ctx, path, content)
}

// Release removes the lock from beadsDir. The error is [ErrChanged] if the lock is gone.
func Release(ctx context.Context, beadsDir string, lock *ExclusiveLock) error {
	err := remove(ctx, beadsDir, func(found *ExclusiveLock) error {
		if !lock.Same(found) {
			return ErrChanged
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	return err
}

// Same reports whether two locks come from one acquisition.
func (e *ExclusiveLock) Same(other *ExclusiveLock) bool {
	return e.Holder == other.Holder && e.PID == other.PID && e.Hostname == other.Hostname &&
		e.StartedAt.Equal(other.StartedAt) && e.Version == other.Version
}

// removeStale removes a stale lock from beadsDir. It returns the stale lock, also if it could not remove it.
// A lock that is not stale is a [HeldError].
func removeStale(ctx context.Context, beadsDir string) (stale *ExclusiveLock, err error) {
	for range takeovers {
		found, dead, err := Check(beadsDir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return stale, nil
		case err != nil:
			return stale, err
		case !dead:
			return stale, &HeldError{found}
		}
		stale = found
		err = remove(ctx, beadsDir, func(found *ExclusiveLock) error {
			if !found.Same(stale) {
				return ErrChanged
			}
			return nil
		})
		if errors.Is(err, syscall.EBUSY) { // the lockfs mount knows that the holder is alive, on another host of this name
			return stale, &HeldError{found}
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChanged) {
			return stale, err
		}
	}
	return stale, ErrChanged
}

// remove removes the lock of a database if may permits it. Other users of LockDir wait meanwhile. The error
// is fs.ErrNotExist if the lock is missing or was replaced.
func remove(ctx context.Context, beadsDir string, may func(*ExclusiveLock) error) error {
	return lockfile.RemoveIf(ctx, filepath.Join(beadsDir, FileName), func(content []byte, f *os.File) error {
		found, err := read(content, f)
		if err != nil {
			return &MalformedError{err}
		}
		return may(found)
	})
}

// Read reads the lock of a database. The error is fs.ErrNotExist if there is none, or a [MalformedError].
func Read(beadsDir string) (*ExclusiveLock, error) {
	lock, _, err := Check(beadsDir)
	return lock, err
}

// Check is Read, and reports whether the lock is stale: its process is provably dead, so any process may
// remove it. A lockfs mount also knows processes on other hosts and in other containers.
func Check(beadsDir string) (lock *ExclusiveLock, stale bool, err error) {
	f, content, err := lockfile.Open(filepath.Join(beadsDir, FileName))
	if err = lockfile.Gone(err); errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read lock file: %w", err)
	}
	defer func() { _ = f.Close() }()
	if lock, err = read(content, f); err != nil {
		return nil, false, &MalformedError{err}
	}
	stale, _ = lockfile.Judged(f, lockfact.Beads)
	return lock, stale || !lockfile.Watched(f) && lock.Stale(), nil
}

// read parses the content of a file.
func read(content []byte, f *os.File) (*ExclusiveLock, error) {
	if err := lockfile.CheckSize(content, f); err != nil {
		return nil, err
	}
	return Parse(content)
}
