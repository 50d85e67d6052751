package tower

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// Dir is a directory of locks (section 2.3) on any file system.
//
// Calls of this package in one directory exclude each other, across the processes and goroutines of one host.
// Two requests never hold one lock. A steal never hits a lock renewed or acquired meanwhile. Readers
// never see a part of a lock.
//
// Other programs (rm or mv in a script), and other hosts on a network file system, can act between the look
// at a lock and its replacement. Only a file system that compares the two, such as a lockfs mount, refuses
// that. This package understands its refusals (EBUSY, ENOENT, ESTALE); there the cluster's clock decides when
// a lock is stale.
type Dir struct {
	Path string
	Now  func() time.Time // time.Now except in tests

	calls calls
}

// calls are the system calls replaced by tests.
type calls struct {
	link, rename func(oldPath, newPath string) error
	remove       func(path string) error
	attribute    func(path, name string) string
}

func (d Dir) link(oldPath, newPath string) error {
	if d.calls.link != nil {
		return d.calls.link(oldPath, newPath)
	}
	return os.Link(oldPath, newPath)
}

func (d Dir) rename(oldPath, newPath string) error {
	if d.calls.rename != nil {
		return d.calls.rename(oldPath, newPath)
	}
	return os.Rename(oldPath, newPath)
}

func (d Dir) remove(path string) error {
	if d.calls.remove != nil {
		return d.calls.remove(path)
	}
	return os.Remove(path)
}

func (d Dir) attribute(path, name string) string {
	if d.calls.attribute != nil {
		return d.calls.attribute(path, name)
	}
	return lockfile.Attribute(path, name)
}

// LockPath returns the path of a lock's file.
func (d Dir) LockPath(lockName string) string { return filepath.Join(d.Path, FileName(lockName)) }

// Make creates a missing directory with mode 700 (section 10.1). An existing one keeps its mode: it may be
// shared, such as the root of a mount.
func (d Dir) Make() error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(d.Path, DirMode)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(d.Path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: d.Path, Err: syscall.ENOTDIR}
	}
	return err
}

// Exposed returns the objection of section 12.1 to the directory's mode and owner; empty: none.
func (d Dir) Exposed() string {
	info, err := os.Stat(d.Path)
	if err != nil {
		return ""
	}
	if mode := info.Mode().Perm(); mode != DirMode {
		return fmt.Sprintf("has mode %#o, and should have %#o", mode, DirMode)
	}
	if uid, ok := owner(info); ok && uid != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d, and should belong to user %d, the caller", uid, os.Geteuid())
	}
	return ""
}

// Read returns a lock and the content of its file. The error is fs.ErrNotExist without a lock, and an
// [InvalidError] without a valid lock of that name (section 12.2).
func (d Dir) Read(lockName string) (*Lock, []byte, error) {
	l, content, _, err := d.read(lockName)
	return l, content, err
}

// read is Read with the file's information.
func (d Dir) read(lockName string) (*Lock, []byte, fs.FileInfo, error) {
	if err := ValidateName(lockName); err != nil {
		return nil, nil, nil, err
	}
	path := d.LockPath(lockName)
	content, file, err := readRegular(path)
	if err != nil {
		var field *lockfact.FieldError
		if errors.As(err, &field) {
			err = &InvalidError{LockName: lockName, Path: path, Err: err}
		}
		return nil, nil, nil, err
	}
	l, err := Parse(content)
	if err == nil && l.LockName != lockName {
		err = &lockfact.FieldError{Field: "lock_name", Problem: fmt.Sprintf("is %q in the file of %q", l.LockName, lockName)}
	}
	if err != nil {
		return nil, content, file, &InvalidError{LockName: lockName, Path: path, Err: err}
	}
	return l, content, file, nil
}

// staleRetries limits the attempts to open a file replaced by another host meanwhile.
const staleRetries = 5

func readRegular(path string) (content []byte, file fs.FileInfo, err error) {
	for range staleRetries {
		content, file, err = readOnce(path)
		if !errors.Is(err, syscall.ESTALE) {
			break
		}
	}
	return content, file, err
}

func readOnce(path string) ([]byte, fs.FileInfo, error) {
	file, content, err := lockfile.Open(path)
	if errors.Is(err, lockfile.ErrNotRegular) {
		return nil, nil, &lockfact.FieldError{Field: "file", Problem: "not a regular file"}
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	if err := lockfile.CheckSize(content, file); err != nil {
		return nil, nil, &lockfact.FieldError{Field: "file", Problem: err.Error()}
	}
	info, err := file.Stat()
	return content, info, err
}

// stale applies section 6.1, by the cluster's clock on a lockfs mount.
func (d Dir) stale(l *Lock) bool {
	path := d.LockPath(l.LockName)
	if d.attribute(path, "format") == lockfact.Tower.String() {
		switch lockfact.State(d.attribute(path, "state")) {
		case lockfact.Stale:
			return true
		case lockfact.Held:
			return false
		}
	}
	return l.Stale(d.Now())
}

// token returns the fencing token; 0 on other file systems.
func (d Dir) token(lockName string) uint64 {
	token, _ := strconv.ParseUint(d.attribute(d.LockPath(lockName), "token"), 10, 64)
	return token
}
