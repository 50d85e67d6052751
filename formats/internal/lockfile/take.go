package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Judge says of a lock, from its content and its open file, why it must stay; nil: it is stale, and may be removed.
type Judge func(content []byte, f *os.File) error

// ErrChanged is a lock that became another one while it was dealt with, again and again.
var ErrChanged = errors.New("somebody else changed the lock meanwhile")

// attempts bounds how often Take looks again because the lock was another one than a moment before.
const attempts = 10

// Take creates a lock file with the content that render gives at that moment, in place of a stale one if there is
// one. Of any number of processes that do this at once exactly one gets it. It does not wait: the error is what
// judge has to say of the lock that is there.
func Take(ctx context.Context, path string, mode fs.FileMode, judge Judge, render func() ([]byte, error)) (*Held, error) {
	for range attempts {
		err := vacate(ctx, path, judge)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		content, err := render()
		if err != nil {
			return nil, err
		}
		err = Create(path, content, mode)
		if err == nil {
			return Hold(ctx, path, content)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, ErrChanged
}

// vacate answers nil when there is no lock any more, and fs.ErrNotExist when that has to be looked at again.
func vacate(ctx context.Context, path string, judge Judge) error {
	err := look(path, judge)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return RemoveIf(ctx, path, judge)
}

// RemoveIf removes a lock if, judged while no other program does the same, it may be. The error is fs.ErrNotExist if
// there is none, or the one that was judged does not have the name any more.
func RemoveIf(ctx context.Context, path string, judge Judge) error {
	unlock, err := LockDir(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	return look(path, func(content []byte, f *os.File) error {
		if err := judge(content, f); err != nil {
			return err
		}
		return Remove(path, f)
	})
}

func look(path string, judge Judge) error {
	f, content, err := Open(path)
	if err != nil {
		return Gone(err)
	}
	defer func() { _ = f.Close() }()
	return judge(content, f)
}
