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

// Dir is a directory with one lock file for each task ("Path Configuration").
//
// Any number of processes can use its methods at once. Of those that acquire a task exactly one succeeds,
// even if its lock has expired and all try to replace it. This holds on one host, and across hosts on a
// lockfs mount. Programs without this package take part, because their creation is exclusive too. But between
// finding an expired lock and removing it, only a lockfs mount keeps them from removing a new one.
//
// Locks expire by this host's clock; on a lockfs mount, by the cluster's clock.
type Dir string

// DefaultDir returns the directory from the environment. An empty variable counts as missing.
func DefaultDir() Dir {
	state := os.Getenv(StateDirVariable)
	if state == "" {
		state = DefaultStateDir
	}
	return Dir(filepath.Join(state, LockDir))
}

// Entry is the lock of a task in a directory.
type Entry struct {
	TaskID string
	Lock   *Lock  // nil: see Err
	Status Status // Active or Expired; Unreadable without a Lock
	Token  string // the fencing token, larger for each holder; empty on other file systems
	Err    error  // the fault of the content
}

// Unreadable is the state of a file that is no lock, or the lock of another task. It never expires.
const Unreadable Status = "Unreadable"

// ErrUnreadable means a file that is no lock, or the lock of another task.
var ErrUnreadable = errors.New("cannot be understood")

// HeldError means that the task has a lock that has not expired.
type HeldError struct{ Entry Entry }

// Error names the holder.
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

// ErrChanged means that the lock changed during each of several attempts.
var ErrChanged = lockfile.ErrChanged

// attempts limits the attempts of Acquire while the lock keeps changing.
const attempts = 10

// Acquire acquires the lock of a task and replaces an expired one; a ttl of 0 means no expiry. It does not
// wait: a [HeldError] names the holder ("Behavioral Specifications", 1).
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

// changed reports whether the caller should try again: the lock or the directory was created or removed
// meanwhile.
func changed(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)
}

// create writes a lock whose time begins at the moment of the write.
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

// freeOrExpired returns nil if the task has no lock any more.
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

// Release removes the lock of a task if the worker holds it ("Behavioral Specifications", 2). The error is an
// [OwnerError] for another worker, fs.ErrNotExist without a lock, and [ErrUnreadable] for an invalid file. An
// expired lock still belongs to its worker until another worker replaces it.
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

// remove removes the lock of a task if may permits it. Other users of LockDir wait meanwhile. The error is
// fs.ErrNotExist if the lock is missing or was replaced.
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

// List reads all locks, sorted by file name. It creates a missing directory.
func (d Dir) List() ([]Entry, error) {
	_ = os.MkdirAll(string(d), 0o777) // after an error there are no locks
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

// read reads and evaluates the lock of a task.
func (d Dir) read(taskID string) (Entry, error) {
	f, content, err := lockfile.Open(d.file(taskID))
	if err != nil {
		return Entry{}, lockfile.Gone(err)
	}
	defer func() { _ = f.Close() }()
	return entryOf(taskID, content, f), nil
}

// entryOf evaluates the content of a file.
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

// statusOf returns the status of a lock in a file, by the cluster's clock on a lockfs mount.
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

// Line returns the entry's line in list.
func (e Entry) Line() string {
	if e.Lock == nil {
		return fmt.Sprintf("%s: %s (%v)", e.TaskID, e.Status, e.Err)
	}
	return e.Lock.line(e.Status)
}

// Details returns the entry's text in check: its status, and a line for each field.
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
