package swarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// Dir is a directory of lock files, one a task ("Path Configuration").
//
// Its methods can be used by any number of processes at once. On one host, and on a mount of lockfs on all
// hosts, exactly one of those that want a task gets it, also when its lock has expired and all of them want
// to replace it. Programs that do not use this package may still take part: creation is exclusive for them
// too, but between the moment in which they find a lock expired and that in which they remove it only a mount
// of lockfs keeps them from removing a new one.
//
// Whether a lock has expired is judged on the clock of this host; on a mount of lockfs, on the cluster's.
type Dir string

// DefaultDir is the directory that the environment asks for. An empty variable is as good as none.
func DefaultDir() Dir {
	state := os.Getenv(StateDirVariable)
	if state == "" {
		state = DefaultStateDir
	}
	return Dir(filepath.Join(state, LockDir))
}

// Entry is what a directory has for a task.
type Entry struct {
	TaskID string
	Lock   *Lock  // nil: Err says why
	Status Status // Active or Expired; Unreadable without a Lock
	Token  string // the fencing token, larger for each holder; empty anywhere but on a mount of lockfs
	Err    error  // what is wrong with the content
}

// Unreadable is the state of a file that is no lock, or one of another task. It never expires.
const Unreadable Status = "Unreadable"

// ErrUnreadable is a file that is no lock, or one of another task.
var ErrUnreadable = errors.New("cannot be understood")

// HeldError is an acquisition of a task that has a lock which has not expired.
type HeldError struct{ Entry Entry }

// Error says who has the lock.
func (e *HeldError) Error() string {
	id, l := e.Entry.TaskID, e.Entry.Lock
	if l == nil {
		return fmt.Sprintf("the lock file of %s cannot be understood, so it counts as held: %v", id, e.Entry.Err)
	}
	said := fmt.Sprintf("%s is locked by %s since %s", id, l.Worker, l.AcquiredAt.Format(time.RFC3339))
	if l.ExpiresAt.IsZero() {
		return said + ", and does not expire"
	}
	return said + ", and expires at " + l.ExpiresAt.Format(time.RFC3339)
}

// ErrChanged is a lock that became another one while it was dealt with, again and again.
var ErrChanged = lockfile.ErrChanged

// attempts bounds how often Acquire looks again because the lock was another one than a moment before.
const attempts = 10

// Acquire takes the lock of a task; a ttl of 0 is none. It does not wait: a [HeldError] says who has it
// ("Behavioral Specifications", 1). An expired lock is replaced.
func (d Dir) Acquire(ctx context.Context, taskID, worker string, ttl time.Duration) (*Lock, error) {
	if _, err := New(taskID, worker, ttl, time.Now()); err != nil {
		return nil, err
	}
	for range attempts {
		err := d.freeOrExpired(ctx, taskID)
		if changed(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(string(d), 0o777); err != nil {
			return nil, err
		}
		lock, err := d.create(taskID, worker, ttl)
		if err == nil || !changed(err) {
			return lock, err
		}
	}
	return nil, fmt.Errorf("%s: %w, again and again", taskID, ErrChanged)
}

// changed tells an error that is another the next time: the lock, or the directory, came or went.
func changed(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)
}

// create begins the lock's time at the moment in which it is written.
func (d Dir) create(taskID, worker string, ttl time.Duration) (*Lock, error) {
	lock, err := New(taskID, worker, ttl, time.Now())
	if err != nil {
		return nil, err
	}
	content, err := lock.Render()
	if err == nil {
		err = lockfile.Create(d.file(taskID), content, FileMode)
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// freeOrExpired answers nil when the task has no lock any more.
func (d Dir) freeOrExpired(ctx context.Context, taskID string) error {
	found, err := d.read(taskID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case found.Status != Expired:
		return &HeldError{found}
	}
	return d.remove(ctx, taskID, func(found Entry) error {
		if found.Status != Expired {
			return &HeldError{found}
		}
		return nil
	})
}

// Release removes the lock of a task if that worker has it ("Behavioral Specifications", 2): else it is an
// [OwnerError], fs.ErrNotExist if there is none, and [ErrUnreadable] if nobody can tell. A lock that has expired is
// its worker's all the same, until somebody else replaces it.
func (d Dir) Release(ctx context.Context, taskID, worker string) error {
	if err := ValidateTaskID(taskID); err != nil {
		return err
	}
	return d.remove(ctx, taskID, func(found Entry) error {
		if found.Lock == nil {
			return fmt.Errorf("the lock file of %s %w: %w", taskID, ErrUnreadable, found.Err)
		}
		return found.Lock.CheckOwner(taskID, worker)
	})
}

// remove removes the lock of a task if, judged while no other program does the same, it may be. The error is
// fs.ErrNotExist if there is none, or the one that was judged is gone.
func (d Dir) remove(ctx context.Context, taskID string, may func(Entry) error) error {
	return lockfile.RemoveIf(ctx, d.file(taskID), func(content []byte, f *os.File) error {
		return may(entryOf(taskID, content, f))
	})
}

// Check reads the lock of a task. The error is fs.ErrNotExist if there is none.
func (d Dir) Check(taskID string) (Entry, error) {
	if err := ValidateTaskID(taskID); err != nil {
		return Entry{}, err
	}
	return d.read(taskID)
}

// List reads all locks, sorted by the names of their files. It makes the directory if there is none.
func (d Dir) List() ([]Entry, error) {
	_ = os.MkdirAll(string(d), 0o777) // if that cannot be done, there are no locks
	files, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var entries []Entry
	for _, file := range files {
		taskID, is := strings.CutSuffix(file.Name(), suffix)
		if !is || ValidateTaskID(taskID) != nil {
			continue
		}
		found, err := d.read(taskID)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			found = Entry{TaskID: taskID, Status: Unreadable, Err: err}
		}
		entries = append(entries, found)
	}
	return entries, nil
}

func (d Dir) file(taskID string) string { return filepath.Join(string(d), FileName(taskID)) }

// read reads and judges the lock of a task.
func (d Dir) read(taskID string) (Entry, error) {
	f, content, err := lockfile.Open(d.file(taskID))
	if err != nil {
		return Entry{}, lockfile.Gone(err)
	}
	defer func() { _ = f.Close() }()
	return entryOf(taskID, content, f), nil
}

// entryOf judges what was read from a file.
func entryOf(taskID string, content []byte, f *os.File) Entry {
	found := Entry{TaskID: taskID, Status: Unreadable, Token: lockfile.AttributeOf(f, "token")}
	if found.Err = lockfile.CheckSize(content, f); found.Err != nil {
		return found
	}
	if found.Lock, found.Err = Parse(content); found.Err == nil {
		found.Status = statusOf(found.Lock, f)
		if found.Lock.TaskID != taskID {
			found.Lock, found.Status = nil, Unreadable
			found.Err = &lockfact.FieldError{Field: "task_id", Problem: "is that of another task"}
		}
	}
	return found
}

// statusOf is the status of a lock in a file, on the cluster's clock where there is one.
func statusOf(l *Lock, f *os.File) Status {
	stale, known := lockfile.Judged(f, lockfact.Swarm)
	switch {
	case !known:
		return l.Status(time.Now())
	case stale:
		return Expired
	}
	return Active
}

// Line is the entry's line in list.
func (e Entry) Line() string {
	if e.Lock == nil {
		return fmt.Sprintf("%s: %s (%v)", e.TaskID, e.Status, e.Err)
	}
	return e.Lock.line(e.Status)
}

// Details is what check says of the entry: its status, and a line for each field that is set.
func (e Entry) Details() string {
	if e.Lock == nil {
		return e.Line() + "\n"
	}
	details := e.Lock.details(e.Status)
	if e.Token != "" {
		details += "  token: " + e.Token + "\n"
	}
	return details
}
