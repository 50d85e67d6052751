package lockfile

import (
	"context"
	"errors"
	"io/fs"
)

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
