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

// HeldError is an acquisition of a database that has a lock which is not stale.
type HeldError struct{ Lock *ExclusiveLock }

// Error says who has it.
func (e *HeldError) Error() string {
	l := e.Lock
	return fmt.Sprintf("locked by %s (process %d on %s) since %s",
		lockfact.HolderName(l.Holder), l.PID, lockfact.HolderName(l.Hostname), l.StartedAt.Format(time.RFC3339))
}

// MalformedError is a lock file that cannot be understood, so that nobody removes it ("Lock File Corruption").
type MalformedError struct{ Err error }

// Error is worded as in "Daemon Logging".
func (e *MalformedError) Error() string { return "malformed lock file: " + e.Err.Error() }

// Unwrap is what is wrong with it.
func (e *MalformedError) Unwrap() error { return e.Err }

// ErrChanged is a lock that became another one while it was dealt with, or is not the one it is taken for.
var ErrChanged = errors.New("the lock is gone, or somebody else has it now")

// takeovers bounds how often a stale lock is looked at again because it was another one than a moment before.
const takeovers = 10

// Acquire writes a lock file into beadsDir, in place of a stale one if there is one. It does not wait: a
// [HeldError] says who has it, a [MalformedError] that nobody can tell.
//
// The specification's examples overwrite whatever is there ("Multiple Writers Without Daemon"). Here exactly
// one of any number of processes that do this at once gets the lock: on one host, and on a mount of lockfs on
// all hosts. The file is complete from the first moment, so a daemon never finds it malformed.
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
	pollInterval    = 100 * time.Millisecond // counts only where nothing tells that the lock has changed
	processInterval = time.Second            // nothing tells that a process has ended, but lockfs, which removes its lock
)

// Held is a lock that this process took. It has the methods
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held = lockfile.Held

// LostError is a lock that its holder has no longer: somebody removed, replaced or overwrote it.
type LostError = lockfile.LostError

// Hold is Acquire until the lock is taken or ctx ends, which gives the last reason why it was not taken. It tries once
// at least.
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

// Release removes the lock from beadsDir. It is [ErrChanged] if that lock is not there any more.
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

// Same tells whether two locks are of one acquisition.
func (e *ExclusiveLock) Same(other *ExclusiveLock) bool {
	return e.Holder == other.Holder && e.PID == other.PID && e.Hostname == other.Hostname &&
		e.StartedAt.Equal(other.StartedAt) && e.Version == other.Version
}

// removeStale makes sure that beadsDir has no lock, and answers the stale one that it removed, or could not
// remove, if there was one. A lock that is not stale is a [HeldError].
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
		if errors.Is(err, syscall.EBUSY) { // a mount of lockfs knows that it lives, on another host of this name
			return stale, &HeldError{found}
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChanged) {
			return stale, err
		}
	}
	return stale, ErrChanged
}

// remove removes the lock of a database if, judged while no other program does the same, it may be. The error is
// fs.ErrNotExist if there is none, or the one that was judged is gone.
func remove(ctx context.Context, beadsDir string, may func(*ExclusiveLock) error) error {
	return lockfile.RemoveIf(ctx, filepath.Join(beadsDir, FileName), func(content []byte, f *os.File) error {
		found, err := read(content, f)
		if err != nil {
			return &MalformedError{err}
		}
		return may(found)
	})
}

// Read reads the lock of a database. The error is fs.ErrNotExist if there is none, and a [MalformedError].
func Read(beadsDir string) (*ExclusiveLock, error) {
	lock, _, err := Check(beadsDir)
	return lock, err
}

// Check is Read, and tells whether the lock is stale, so that anybody may remove it: its process is provably dead. A
// mount of lockfs knows more of that, also on other hosts and in other containers.
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

// read reads the lock in what was read of a file.
func read(content []byte, f *os.File) (*ExclusiveLock, error) {
	if err := lockfile.CheckSize(content, f); err != nil {
		return nil, err
	}
	return Parse(content)
}
