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

// Acquisition is a lock that was taken.
type Acquisition struct {
	Lock     *Lock
	Path     string
	File     fs.FileInfo // of the file that was made for the lock; nil where the file system has no hard links
	Token    uint64      // on a mount of lockfs: larger than every earlier holder's
	Previous []byte      // the content of the stale lock that was stolen; nil if there was none
}

// Events are the audit events of the acquisition: lock_stolen before lock_acquired if it was stolen, for
// a stolen lock is an acquired one too (sections 4.3, 6.3 and 7.2).
func (a *Acquisition) Events() []any {
	events := []any{a.Lock.Acquired(a.Path, a.Lock.CreatedAt)}
	if a.Previous != nil {
		if stolen, err := a.Lock.Stolen(a.Previous, a.Lock.CreatedAt); err == nil {
			events = append([]any{stolen}, events...)
		}
	}
	return events
}

// Acquire takes the lock that l describes, from now on (section 4.1). A stale one is stolen with force
// and blocks without; one that is active always blocks (section 7.1). The errors of a lock that is
// there are [BlockedError] and [InvalidError], and a [LostError] if it was taken away again at once.
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

// withToken looks at the lock again once it has read a token: a thief's would be larger, and do harm.
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

// create gives a complete file its name, so that nobody ever sees half a lock (section 4.2 with what
// both its methods mean: mv -n of older coreutils tells the loser that it has won).
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

// steal replaces a stale lock, if it is still that lock.
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
	if errors.Is(err, syscall.EBUSY) { // a live lock of another host, whatever this host's clock says
		err = &BlockedError{Lock: previous, At: d.Now(), Err: err}
	}
	return file, err
}

// pollInterval counts only where nothing tells that the lock has changed.
const pollInterval = 500 * time.Millisecond

// AcquireWait is Acquire until the lock is taken or ctx ends, which gives the last reason why it was not
// taken. With force it steals the lock once that is stale.
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

// Blocks reports whether an error of Acquire means that somebody has the lock, or took it away at once.
func Blocks(err error) bool {
	var blocked *BlockedError
	var invalid *InvalidError
	var lost *LostError
	return errors.As(err, &blocked) || errors.As(err, &invalid) || errors.As(err, &lost) || errors.Is(err, errChanged)
}
