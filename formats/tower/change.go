package tower

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"lockfs/formats/internal/lockfile"
)

// errChanged is a lock changed after its evaluation: evaluate it again.
var errChanged = errors.New("it changes all the time")

// maxChanges limits the attempts. Each failure means progress of another program.
const maxChanges = 100

// untilSettled repeats try while the lock changes.
func untilSettled(path string, try func() error) error {
	for range maxChanges {
		if err := try(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", path, errChanged)
}

// unchanged calls act if the lock still has the evaluated content. Meanwhile no other user of this package on
// this host changes the directory. The check is also a look for a file system that compares looks and
// replacements.
func (d Dir) unchanged(lockName string, content []byte, act func() error) error {
	unlock, err := lockfile.LockDir(context.Background(), d.Path)
	if err != nil {
		return err
	}
	defer unlock()
	_, now, err := d.Read(lockName)
	var invalid *InvalidError
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &invalid) {
		return err
	}
	if err != nil || !bytes.Equal(now, content) {
		return errChanged
	}
	err = act()
	if errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) {
		return errChanged // the file system has another lock
	}
	return err
}

// fileMode is the mode of a new lock: all users may read it.
const fileMode = 0o644

const tempSuffix = ".tmp"

// tempPath returns the path of a temporary file beside the lock. Each call has its own, because a request may
// be repeated while its first attempt still runs.
func (d Dir) tempPath(lockName string) string {
	var unique [8]byte
	_, _ = rand.Read(unique[:])
	return d.LockPath(lockName) + "." + hex.EncodeToString(unique[:]) + tempSuffix
}

// writeTemp writes a content to a tempPath.
func (d Dir) writeTemp(lockName string, content []byte, mode fs.FileMode) (string, error) {
	path := d.tempPath(lockName)
	return path, lockfile.WriteNew(path, content, mode)
}

// sweep removes the lock's temporary files of killed processes.
func (d Dir) sweep(lockName string) {
	random := strings.Repeat("[0-9a-f]", 16)
	lockfile.Sweep(d.LockPath(lockName), d.Now(), func(name string) bool {
		ours, _ := filepath.Match(FileName(lockName)+"."+random+tempSuffix, name)
		return ours
	})
}
