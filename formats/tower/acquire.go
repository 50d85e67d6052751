package tower

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/internal/stamp"
)

// Acquisition is an acquired lock.
type Acquisition struct {
	Lock     *Lock
	Path     string
	File     fs.FileInfo // of the lock's file; nil on file systems without hard links
	Token    uint64      // on a lockfs mount: larger than that of each earlier holder
	Previous []byte      // the content of the stolen lock; nil if none
}

// Events returns the audit events of the acquisition. A stolen lock has lock_stolen before lock_acquired
// (sections 4.3, 6.3 and 7.2).
func (a *Acquisition) Events() []any {
	events := []any{a.Lock.Acquired(a.Path, a.Lock.CreatedAt)}
	if a.Previous != nil {
		if stolen, err := a.Lock.Stolen(a.Previous, a.Lock.CreatedAt); err == nil {
			events = append([]any{stolen}, events...)
		}
	}
	return events
}

// Acquire acquires the lock l now (section 4.1). A stale lock is stolen with force and blocks without; an
// active lock always blocks (section 7.1). For an existing lock the error is a [BlockedError] or an
// [InvalidError]. A [LostError] means another program took the new lock away at once.
func (d Dir) Acquire(l *Lock, force bool) (*Acquisition, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	var taken *Acquisition
	err := untilSettled(d.LockPath(l.LockName), func() (err error) {
		taken, err = d.acquire(l, force)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.sweep(l.LockName)
	return d.withToken(taken)
}

// withToken adds the fencing token, and then checks the lock again. The token of a thief would be larger, and
// wrong here.
func (d Dir) withToken(taken *Acquisition) (*Acquisition, error) {
	token := d.token(taken.Lock.LockName)
	if token == 0 {
		return taken, nil
	}
	var lost *LostError
	if _, _, _, err := d.own(taken.Lock.LockName, taken.Lock.RequestID); errors.As(err, &lost) {
		return nil, err
	}
	taken.Token = token
	return taken, nil
}

func (d Dir) acquire(l *Lock, force bool) (*Acquisition, error) {
	now := stamp.Second(d.Now())
	taken := *l
	taken.CreatedAt, taken.LastHeartbeatAt = now, now
	current, content, err := d.Read(l.LockName)
	var file fs.FileInfo
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file, err = d.create(&taken)
	case err != nil:
		return nil, err
	default:
		if err := d.blocks(current, force); err != nil {
			return nil, err
		}
		file, err = d.steal(&taken, current, content)
	}
	if err != nil {
		return nil, err
	}
	return &Acquisition{Lock: &taken, Path: d.LockPath(l.LockName), File: file, Previous: content}, nil
}

func (d Dir) blocks(current *Lock, force bool) error {
	stale := d.stale(current)
	if stale && force {
		return nil
	}
	return &BlockedError{Lock: current, Stale: stale, At: d.Now()}
}

// create links a complete file to the lock's name, so readers never see a part of a lock. It implements both
// methods of section 4.2: mv -n of older coreutils reports success to the loser.
func (d Dir) create(l *Lock) (file fs.FileInfo, err error) {
	content, err := l.Render()
	if err != nil {
		return nil, err
	}
	err = lockfile.CreateFrom(d.tempPath(l.LockName), d.LockPath(l.LockName), content, fileMode, func(from, to string) error {
		written, err := os.Lstat(from)
		if err != nil {
			return err
		}
		if err := d.link(from, to); err != nil {
			return err
		}
		file = written
		return nil
	})
	if errors.Is(err, fs.ErrExist) {
		err = errChanged
	}
	return file, err
}

// steal replaces a stale lock if the file still has that lock.
func (d Dir) steal(l, previous *Lock, content []byte) (fs.FileInfo, error) {
	text, err := l.Render()
	if err != nil {
		return nil, err
	}
	temp, err := d.writeTemp(l.LockName, text, fileMode)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(temp) }()
	file, err := os.Lstat(temp)
	if err != nil {
		return nil, err
	}
	err = d.unchanged(l.LockName, content, func() error {
		return d.rename(temp, d.LockPath(l.LockName))
	})
	if errors.Is(err, syscall.EBUSY) { // the holder is alive on another host, despite this host's clock
		err = &BlockedError{Lock: previous, At: d.Now(), Err: err}
	}
	return file, err
}

// pollInterval is unused if the file system reports changes.
const pollInterval = 500 * time.Millisecond

// AcquireWait calls Acquire until it succeeds or ctx ends. Then the error is the last reason. With force it
// steals the lock once it is stale.
func (d Dir) AcquireWait(ctx context.Context, l *Lock, force bool) (taken *Acquisition, err error) {
	_ = lockfile.Wait(ctx, d.LockPath(l.LockName), pollInterval, func() (time.Time, bool) {
		taken, err = d.Acquire(l, force)
		var blocked *BlockedError
		if !force || !errors.As(err, &blocked) {
			return time.Time{}, Blocks(err)
		}
		return lockfile.StaleAt(d.LockPath(l.LockName), blocked.Lock.StaleSince()), true
	})
	return taken, err
}

// Blocks reports whether an error of Acquire means that another request holds the lock, or took it away at
// once.
func Blocks(err error) bool {
	var blocked *BlockedError
	var invalid *InvalidError
	var lost *LostError
	return errors.As(err, &blocked) || errors.As(err, &invalid) || errors.As(err, &lost) || errors.Is(err, errChanged)
}
