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
	pollInterval    = 100 * time.Millisecond // only where nothing reports changes
	processInterval = time.Second            // nothing reports the end of a process
)

// Wait waits until the lock at path is [Free] or [Stale], and returns this state. Another program may acquire
// the lock a moment later. The rule of its format decides about a lock, on a mount of lockfs the mount.
// Anything else is held as long as it exists, also a directory or symbolic link. When ctx ends, Wait returns
// the last state and ctx's error.
//
// Wait does not poll if the system reports changes: on Linux, on local file systems and on mounts of lockfs.
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

// Watch calls look, and again after each possible change of the file at path and at the time returned by
// look. It stops when look returns false, or when ctx ends, with ctx's error. Where nothing reports changes,
// it calls look at each interval, and everywhere now and then.
func Watch(ctx context.Context, path string, interval time.Duration, look func() (next time.Time, again bool)) error {
	return lockfile.Wait(ctx, path, interval, look)
}

// look returns the state of the lock at path, and when it will be stale, if known.
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

// absent returns Free for a missing lock in an existing directory. Without the directory, the state is
// unknown.
func absent(path string, err error) (State, time.Time, error) {
	if !errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", time.Time{}, err
	}
	return Free, time.Time{}, nil
}

// judgeHere evaluates a lock written on this host, or on one with the same clock. It also returns when to
// evaluate it again without a change; zero: never.
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
