// Package lockfile creates, reads and removes lock files on any file system, beside other programs that do
// the same.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lockfs/formats/lockfact"
)

// MaxContent is larger than any lock. It is also the largest file on lockfs.
const MaxContent = 256 << 10

// ErrNotRegular is a directory, symbolic link, pipe or the like in place of a lock file.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens and reads a lock file, at most one byte more than MaxContent. It follows no symbolic link and
// does not block on a pipe. Until the caller closes the file, its inode number is not reused.
func Open(path string) (*os.File, []byte, error) { return open(path, os.O_RDONLY) }

func open(path string, access int) (*os.File, []byte, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	f, err := os.OpenFile(path, access|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxContent+1))
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, content, nil
}

// Gone replaces ESTALE by fs.ErrNotExist. A lockfs mount returns ESTALE if another file has the name.
func Gone(err error) error {
	if errors.Is(err, syscall.ESTALE) {
		return fs.ErrNotExist
	}
	return err
}

// TooLargeError is a file too large for a lock.
type TooLargeError struct{ Size int64 } // in bytes

// Error returns the size.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large: it has %d bytes, and a lock has at most %d", e.Size, MaxContent)
}

// CheckSize returns a [TooLargeError] if [Open] has read only a part of the file.
func CheckSize(content []byte, f *os.File) error {
	if len(content) <= MaxContent {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return &TooLargeError{info.Size()}
}

// Create creates a lock file with its content in one step; after O_EXCL and a write the file would be empty
// for a moment. The error is fs.ErrExist if the name exists. Create also removes temporary files of killed
// processes.
func Create(path string, content []byte, mode fs.FileMode) error {
	err := CreateFrom(besides(path), path, content, mode, os.Link)
	if err == nil {
		Sweep(path, time.Now(), isBesides)
	}
	return err
}

// CreateFrom is Create with a given temporary file in the same directory and a given function to link it. An
// error names the lock.
func CreateFrom(temp, path string, content []byte, mode fs.FileMode, link func(oldPath, newPath string) error) error {
	if err := WriteNew(temp, content, mode); err != nil {
		return named(err, temp, path)
	}
	defer func() { _ = os.Remove(temp) }()
	err := link(temp, path)
	switch {
	case err == nil || sameFile(temp, path): // a network file system may report an error although the link was made
		return nil
	case cannotLink(err):
		return WriteNew(path, content, mode)
	}
	return err
}

// named replaces the temporary name in an error by the name known to the caller.
func named(err error, file, other string) error {
	var about *fs.PathError
	if errors.As(err, &about) && about.Path == file {
		return &fs.PathError{Op: about.Op, Path: other, Err: about.Err}
	}
	return err
}

// cannotLink reports whether the file system has no hard links, unlike one refusing this link.
func cannotLink(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// WriteNew writes a file that must not exist, and removes it after an error. The content is on disk before
// the file gets its name, because a lock must not be empty after a power failure.
func WriteNew(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// isBesides reports whether besides returned this name.
func isBesides(name string) bool {
	return strings.HasPrefix(name, ".lockfs-") && lockfact.IsTemporary(name)
}

// besides returns a new temporary name in the directory of path. Listings of locks do not show it.
func besides(path string) string { return filepath.Join(filepath.Dir(path), lockfact.TemporaryName()) }

// Remove removes the lock read from seen, and no other. The error is fs.ErrNotExist if the name has
// another file or none.
//
// A lockfs mount compares them itself. On other file systems, Remove first moves the file away and then
// compares. It puts another lock back.
func Remove(path string, seen *os.File) error {
	if AttributeOf(seen, "state") != "" {
		return Gone(os.Remove(path))
	}
	judged, err := seen.Stat()
	if err != nil {
		return err
	}
	moved := besides(path)
	if err := os.Rename(path, moved); err != nil {
		return Gone(err)
	}
	if now, err := os.Lstat(moved); err == nil && os.SameFile(now, judged) {
		_ = os.Remove(moved)
		return nil
	}
	if err := os.Link(moved, path); err != nil {
		return fmt.Errorf("%s was replaced meanwhile by a lock that is now in %s: %w", path, moved, err)
	}
	_ = os.Remove(moved)
	return fs.ErrNotExist
}
