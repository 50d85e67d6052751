package lockfile

import (
	"context"
	"errors"
	"io/fs"
)

// attempts limits the attempts of Take while the lock keeps changing.
const attempts = 10

// Take creates a lock file with the content returned by render at this moment. It replaces a stale lock. Of
// several processes at once exactly one succeeds. Take does not wait: if a lock is held, the error comes from
// judge.
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

// vacate returns nil if there is no lock any more, and fs.ErrNotExist if the caller has to check again.
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
