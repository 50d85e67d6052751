package formats

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockfs/formats/internal/lockfile"
)

const (
	pollInterval    = 100 * time.Millisecond // counts only where nothing tells that the lock has changed
	processInterval = time.Second            // nothing tells that a process has ended
)

// Wait waits until the lock at path is [Free] or [Stale], which it answers, so that whoever wants it can take it: one
// moment later somebody may have. A lock of any format is judged by its own rule, on a mount of lockfs by what that
// says, and anything of no format is held for as long as it is there, directories and symbolic links too. When ctx
// ends it is [Held], with ctx's error.
//
// It does not poll, where the system tells that the lock has changed: on Linux, on local file systems and on mounts of
// lockfs.
func Wait(ctx context.Context, path string) (State, error) {
	var state State
	var failed error
	err := lockfile.Wait(ctx, path, pollInterval, func() (staleAt time.Time, again bool) {
		state, staleAt, failed = look(path)
		return staleAt, failed == nil && state != Free && state != Stale
	})
	if failed == nil {
		failed = err
	}
	return state, failed
}

// Watch calls look, and again each time that the file at path may have changed and at the time that look answers, until
// it answers that this is enough, or ctx ends, whose error is the result then. Where nothing tells of changes it is
// called at each interval, and everywhere now and then.
func Watch(ctx context.Context, path string, interval time.Duration, look func() (next time.Time, again bool)) error {
	return lockfile.Wait(ctx, path, interval, look)
}

// look tells the state of the lock at path, and when it will be stale if that is known.
func look(path string) (State, time.Time, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return absent(path, err)
	}
	if named.IsDir() && lockfile.Attribute(path, "state") == string(Stale) {
		return Stale, time.Time{}, nil
	}
	f, content, err := lockfile.Open(path)
	if errors.Is(err, lockfile.ErrNotRegular) || errors.Is(err, fs.ErrPermission) {
		return Held, time.Time{}, nil
	}
	if err != nil {
		return absent(path, lockfile.Gone(err))
	}
	defer func() { _ = f.Close() }()
	if state := lockfile.AttributeOf(f, "state"); state != "" {
		return State(state), lockfile.StaleAt(path, time.Time{}), nil
	}
	if lockfile.CheckSize(content, f) != nil {
		return Held, time.Time{}, nil
	}
	state, staleAt := judgeHere(content, FactsOf(content, Origin{}))
	return state, staleAt, nil
}

// absent tells that a lock is gone from that its directory is, of which nobody knows what it would have.
func absent(path string, err error) (State, time.Time, error) {
	if !errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", time.Time{}, err
	}
	return Free, time.Time{}, nil
}

// judgeHere judges a lock of these facts that was written on this host, or one with the same clock: whether it is stale,
// and when that is to be asked again if nothing changes it, zero for never.
func judgeHere(content []byte, facts Facts) (State, time.Time) {
	now := time.Now()
	if k := kindOf(facts.Format); k != nil && k.dead != nil {
		if k.dead(content) {
			return Stale, time.Time{}
		}
		return Held, now.Add(processInterval)
	}
	var staleAt time.Time
	if facts.ExpiresAt != 0 {
		staleAt = time.Unix(0, facts.ExpiresAt)
	}
	if facts.StaleAt(now.UnixNano()) {
		return Stale, staleAt
	}
	return Held, staleAt
}
