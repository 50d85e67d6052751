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

// errChanged means that a lock is not what it was when it was judged: judge again.
var errChanged = errors.New("it changes all the time")

// maxChanges is how often a lock is judged again. Each time somebody else got further.
const maxChanges = 100

// untilSettled judges again for as long as the lock changes.
func untilSettled(path string, try func() error) error {
	for range maxChanges {
		if err := try(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", path, errChanged)
}

// unchanged acts if the lock still has the content that was judged. Until it has acted, nothing else
// on this host that goes through this package changes the directory. A file system that compares what
// was read with what is replaced sees this last look.
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
		return errChanged // the file system saw another lock there
	}
	return err
}

// fileMode is that of a new lock, which everybody may read.
const fileMode = 0o644

const tempSuffix = ".tmp"

// tempPath is a path beside the lock for a file to be moved in its place. It is this call's alone: a request may
// be repeated while the first one still runs.
func (d Dir) tempPath(lockName string) string {
	var unique [8]byte
	_, _ = rand.Read(unique[:])
	return d.LockPath(lockName) + "." + hex.EncodeToString(unique[:]) + tempSuffix
}

// writeTemp writes a whole content to a tempPath.
func (d Dir) writeTemp(lockName string, content []byte, mode fs.FileMode) (string, error) {
	path := d.tempPath(lockName)
	return path, lockfile.WriteNew(path, content, mode)
}

// sweep removes what killed processes left of their temporary files for this lock.
func (d Dir) sweep(lockName string) {
	random := strings.Repeat("[0-9a-f]", 16)
	lockfile.Sweep(d.LockPath(lockName), d.Now(), func(name string) bool {
		ours, _ := filepath.Match(FileName(lockName)+"."+random+tempSuffix, name)
		return ours
	})
}
