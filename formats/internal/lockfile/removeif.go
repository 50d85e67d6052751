package lockfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Judge says of a lock, from its content and its open file, why it must stay; nil: it is stale, and may be removed.
type Judge func(content []byte, f *os.File) error

// ErrChanged is a lock that became another one while it was dealt with, again and again.
var ErrChanged = errors.New("somebody else changed the lock meanwhile")

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
