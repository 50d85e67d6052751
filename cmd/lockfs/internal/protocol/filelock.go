package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/beads"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/raftstore/hostinfo"
)

// held is an acquired lock of a format that needs nothing but a file.
type held interface {
	Path() string
	Token() string
	Check(context.Context) error
	Release(context.Context) error
}

// fileLock is the runLock of such a format.
type fileLock struct {
	path  string
	wait  time.Duration // how long to wait for it
	every time.Duration // how often to check it where nothing reports changes
	// take acquires the lock, waiting until ctx ends. blocks reports whether its error means another holder.
	take   func(ctx context.Context) (held, error)
	blocks func(error) bool
	notice *notice // while it waits; nil: none
	// renew renews a lock that becomes stale by time; nil: it does not.
	renew func(context.Context) error
	life  func() (time.Duration, error) // how long after a renewal the lock is stale; 0: never

	lock     held
	since    time.Duration // start of its life, by hostinfo.BootTime
	lifetime time.Duration // last result of life
}

func (l *fileLock) acquire(ctx context.Context) (string, error) {
	deadline := time.Now().Add(l.wait)
	err := l.acquireWithin(ctx, l.wait)
	for cli.IsLost(err) && !errors.Is(err, errNotReleased) && ctx.Err() == nil && time.Now().Before(deadline) { // lost before it was seen
		err = l.acquireWithin(ctx, time.Until(deadline))
	}
	switch {
	case err != nil && (l.blocks(err) || cli.IsLost(err)):
		return "", notAcquired(ctx, l.wait, fmt.Errorf("%w; %s", err, removeHint(err.Error(), l.path)))
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("not acquired: %w; make the directory %s first", err, cli.Word(filepath.Dir(l.path)))
	case err != nil:
		return "", fmt.Errorf("not acquired: %w", err)
	}
	return l.lock.Token(), nil
}

func (l *fileLock) acquireWithin(ctx context.Context, wait time.Duration) error {
	l.since = hostinfo.BootTime()
	err := l.notice.take(ctx, wait, func(ctx context.Context) (err error) {
		l.lock, err = l.take(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err = l.outlive(ctx); err != nil {
		return errors.Join(err, l.giveBack(ctx))
	}
	return nil
}

// outlive ensures a life long enough to start a command. The lock was acquired at an unknown time after the
// request: during the wait, or long before the reply. So outlive renews it, unless less than a tenth of its
// life has passed since the request.
func (l *fileLock) outlive(ctx context.Context) (err error) {
	if l.life == nil {
		l.life = func() (time.Duration, error) { return 0, nil }
	}
	// Without this, nothing would end the command of a stale lock if later calls of life fail too.
	if l.lifetime, err = l.life(); err != nil {
		return fmt.Errorf("the lifetime of the lock is unknown: %w", err)
	}
	asked := hostinfo.BootTime()
	if l.lifetime == 0 || asked-l.since < l.lifetime/10 {
		return nil
	}
	if err := l.renew(ctx); err != nil {
		return fmt.Errorf("the lock cannot be renewed before the command begins: %w", err)
	}
	if l.since = asked; hostinfo.BootTime()-asked >= l.lifetime {
		return fmt.Errorf("the renewal took longer than the lifetime of the lock, %v", l.lifetime)
	}
	return nil
}

// confirm implements [runLock].
func (l *fileLock) confirm(ctx context.Context) error {
	if err := l.lock.Check(ctx); err != nil {
		return err
	}
	return l.outlive(ctx) // last: the check may have taken long
}

func (l *fileLock) giveBack(ctx context.Context) error {
	return notReleased(persistently(ctx, l.lock.Release))
}

func (l *fileLock) keep(ctx context.Context, warn io.Writer) error {
	k := &keeper{
		path: l.lock.Path(), every: l.every, check: l.lock.Check, renew: l.renew, life: l.life,
		lifetime: l.lifetime, renewedAt: l.since,
	}
	return k.keep(ctx, warn)
}

func (l *fileLock) release(ctx context.Context, _ *os.ProcessState) error { return l.lock.Release(ctx) }

// checkInterval is how often to check a lock where nothing reports changes.
const checkInterval = time.Second

// semaphoreLock calls taken after it has acquired the lock.
func semaphoreLock(file semaphore.File, wait time.Duration, taken func()) *fileLock {
	l := &fileLock{path: file.Path, wait: wait, every: checkInterval, blocks: semaphore.Blocks}
	l.take = func(ctx context.Context) (held, error) {
		lock, err := file.Acquire(ctx)
		if err != nil {
			return nil, lastOf(err)
		}
		taken()
		l.renew = lock.Renew
		l.life = func() (time.Duration, error) {
			life, err := lock.StaleAfter()
			return safely(life), err
		}
		return lock, nil
	}
	return l
}

// safely returns how much of a lock's life its holder may rely on. Timestamps are cut to whole seconds, and
// not all programs allow for this.
func safely(life time.Duration) time.Duration { return life - min(life/2, time.Second) }

// lastOf returns the cause in a timeout error.
func lastOf(err error) error {
	var timeout *semaphore.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.Last
	}
	return err
}

func swarmTaskLock(dir swarm.Dir, task, worker string, ttl, wait time.Duration) *fileLock {
	l := &fileLock{path: swarmFile(dir, task), wait: wait, every: checkInterval}
	l.blocks = func(err error) bool {
		var held *swarm.HeldError
		return errors.As(err, &held) || errors.Is(err, swarm.ErrChanged)
	}
	l.take = func(ctx context.Context) (held, error) {
		lock, err := dir.Hold(ctx, task, worker, ttl)
		if err != nil {
			return nil, err
		}
		if ttl != 0 {
			l.renew = func(ctx context.Context) error { return lock.Extend(ctx, ttl) }
			l.life = func() (time.Duration, error) { return safely(ttl), nil }
		}
		return lock, nil
	}
	return l
}

func beadsFileLock(dir string, lock *beads.ExclusiveLock, wait, every time.Duration) *fileLock {
	return &fileLock{
		path: filepath.Join(dir, beads.FileName), wait: wait, every: every,
		blocks: func(err error) bool {
			var held *beads.HeldError
			return errors.As(err, &held) || errors.Is(err, beads.ErrChanged) || errors.Is(err, syscall.EBUSY)
		},
		take: func(ctx context.Context) (held, error) {
			taken, err := beads.Hold(ctx, dir, lock)
			var malformed *beads.MalformedError
			if errors.As(err, &malformed) {
				return nil, malformedBeads(dir, err)
			}
			if err != nil {
				return nil, err
			}
			return taken, nil
		},
	}
}

func pidLock(path string, wait time.Duration) *fileLock {
	return &fileLock{
		path: path, wait: wait, every: checkInterval,
		blocks: func(err error) bool {
			var held *pid.HeldError
			return errors.As(err, &held) || errors.Is(err, pid.ErrChanged)
		},
		take: func(ctx context.Context) (held, error) {
			taken, err := pid.Hold(ctx, path)
			if err != nil {
				return nil, err
			}
			return taken, nil
		},
	}
}
