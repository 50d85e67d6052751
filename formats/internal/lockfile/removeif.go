package lockfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Judge returns the reason for which a lock must stay, from its content and open file; nil: it is stale and
// may be removed.
type Judge func(content []byte, f *os.File) error

// ErrChanged is a lock changed during each of several attempts.
var ErrChanged = errors.New("another program changed the lock meanwhile")

// RemoveIf removes a lock if judge permits it. Other users of LockDir wait meanwhile. The error is
// fs.ErrNotExist if the lock is missing or was replaced.
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
