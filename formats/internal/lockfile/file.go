// Package lockfile creates, reads and removes lock files in a directory of any file system, among programs that do
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

// MaxContent is more than a lock has; lockfs itself keeps no larger files.
const MaxContent = 256 << 10

// ErrNotRegular is a directory, symbolic link, pipe or the like in place of a lock file.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens a lock file and reads it; of one that is larger than MaxContent one byte more than that. It follows
// no symbolic link and waits for no pipe. The caller closes the file, which until then keeps its identity.
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

// Gone makes fs.ErrNotExist of ESTALE, which is how a mount of lockfs answers that another file has the name.
func Gone(err error) error {
	if errors.Is(err, syscall.ESTALE) {
		return fs.ErrNotExist
	}
	return err
}

// TooLargeError is a file that is larger than a lock can be.
type TooLargeError struct{ Size int64 } // in bytes

// Error says how large.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large: it has %d bytes, and a lock has at most %d", e.Size, MaxContent)
}

// CheckSize answers a [TooLargeError] if what [Open] read of a file is not all of it.
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

// Create makes a lock file that has its content from the first moment, where O_EXCL and a write leave one that is
// empty in between. The error is fs.ErrExist if the name is taken. It also removes the temporary files that killed
// processes left beside it.
func Create(path string, content []byte, mode fs.FileMode) error {
	err := CreateFrom(besides(path), path, content, mode, os.Link)
	if err == nil {
		Sweep(path, time.Now(), isBesides)
	}
	return err
}

// CreateFrom is Create with the name of the temporary file, which is in the same directory, and with what is called
// to link it. An error names the lock.
func CreateFrom(temp, path string, content []byte, mode fs.FileMode, link func(oldPath, newPath string) error) error {
	if err := WriteNew(temp, content, mode); err != nil {
		return named(err, temp, path)
	}
	defer func() { _ = os.Remove(temp) }()
	err := link(temp, path)
	switch {
	case err == nil || sameFile(temp, path): // of network file systems a lost answer may be that it failed
		return nil
	case cannotLink(err):
		return WriteNew(path, content, mode)
	}
	return err
}

// named makes an error about one file, of which nobody has heard, one about another.
func named(err error, file, other string) error {
	var about *fs.PathError
	if errors.As(err, &about) && about.Path == file {
		return &fs.PathError{Op: about.Op, Path: other, Err: about.Err}
	}
	return err
}

// cannotLink tells a file system that has no hard links from one that refuses this one.
func cannotLink(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// WriteNew writes a file that must not exist, and leaves nothing behind when it fails. A lock must not be empty
// after a power cut, so it is on disk before it has its name.
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

// isBesides tells a name that besides made.
func isBesides(name string) bool {
	return strings.HasPrefix(name, ".lockfs-") && lockfact.IsTemporary(name)
}

// besides is a new name in the directory of path, which no listing of locks shows.
func besides(path string) string { return filepath.Join(filepath.Dir(path), lockfact.TemporaryName()) }

// Remove removes the lock that was read from seen, and no other. The error is fs.ErrNotExist if that lock does not
// have the name any more.
//
// A mount of lockfs compares by itself. Elsewhere nothing does, so the file is first moved and then looked at: what
// others put there meanwhile is put back.
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
