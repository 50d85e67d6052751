package lockfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LostError is a lock that this process does not have any more.
type LostError struct {
	Path string
	How  string // what somebody did to it
}

// Error says what happened.
func (e *LostError) Error() string { return fmt.Sprintf("somebody %s %s", e.How, e.Path) }

// Held is a lock that this process took. On a mount of lockfs it is identified by its inode number, which is never reused
// and equal on all hosts, so the check also works after the file system was mounted anew. Anywhere else an inode number may
// be reused, but not while the file is open: there Held keeps it open.
type Held struct {
	path    string
	content []byte   // last written successfully
	pending []byte   // content of the last write, which may have taken effect although it failed
	token   string   // empty outside of a mount of lockfs
	inode   uint64   // with a token
	file    *os.File // without a token; on a mount an open file would suppress inotify events of removals on other hosts
	kind    int64    // type of the file system
}

// Hold takes the lock at path, which this process has just created with this content, for its own. If that cannot be
// done the lock does not stay.
func Hold(ctx context.Context, path string, content []byte) (*Held, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	h := &Held{path: path, content: content}
	err = h.identify()
	if err == nil {
		return h, nil
	}
	h.Close()
	_ = RemoveIf(context.WithoutCancel(ctx), path, func(now []byte, _ *os.File) error {
		if !bytes.Equal(now, content) {
			return ErrChanged
		}
		return nil
	})
	return nil, err
}

func (h *Held) identify() error {
	f, content, err := open(h.path, os.O_RDONLY)
	if err = Gone(err); errors.Is(err, fs.ErrNotExist) {
		return h.lost("removed")
	}
	if err != nil {
		return err
	}
	h.file = f
	if !bytes.Equal(content, h.content) {
		return h.lost("replaced")
	}
	if h.kind, err = kindOf(filepath.Dir(h.path)); err != nil {
		return err
	}
	if h.token, err = tokenOf(f); err != nil || h.token == "" {
		return err
	}
	h.inode, err = inodeOf(f)
	h.Close()
	return err
}

// Token is the fencing token; empty anywhere but on a mount of lockfs.
func (h *Held) Token() string { return h.token }

// Path is the absolute path of the file.
func (h *Held) Path() string { return h.path }

// Check answers nil when the lock is there and nobody has written to it. A [LostError] says that it is not; any other
// error, that it cannot be told, which is no evidence: a mount that is cut off from the others answers nothing, and
// one whose daemon is started again is not there for a moment, but what is locked stays locked.
func (h *Held) Check(ctx context.Context) error {
	return h.open(ctx, os.O_RDONLY, func(*os.File) error { return nil })
}

// Rewrite replaces the content by one of the same length, so that everybody sees the one or the other. It is written
// to the file itself: if that has lost its name meanwhile, to whom it belongs now is not touched.
func (h *Held) Rewrite(ctx context.Context, content []byte) error {
	if len(content) != len(h.content) {
		return fmt.Errorf("%s: a lock of %d bytes cannot take the place of one of %d", h.path, len(content), len(h.content))
	}
	return h.open(ctx, os.O_RDWR, func(f *os.File) error {
		h.pending = content
		if _, err := f.WriteAt(content, 0); err != nil {
			return err
		}
		h.content = content
		return f.Sync()
	})
}

// Release removes the lock, if it is still this one; else it is a [LostError].
func (h *Held) Release(ctx context.Context) error {
	err := h.open(ctx, os.O_RDONLY, func(f *os.File) error { return Remove(h.path, f) })
	var lost *LostError
	if err == nil || errors.As(err, &lost) {
		h.Close()
	}
	return err
}

// Close forgets the lock, which stays. There is no need for it after Release.
func (h *Held) Close() {
	if h.file != nil {
		_ = h.file.Close()
	}
	h.file = nil
}

// open opens the file for then, once it is known to be this lock. Until then has acted, nothing else on this host
// that uses LockDir changes the directory.
func (h *Held) open(ctx context.Context, access int, then func(*os.File) error) error {
	unlock, err := LockDir(ctx, filepath.Dir(h.path))
	if err == nil {
		defer unlock()
		err = h.opened(access, then)
	}
	err = Gone(err)
	if errors.Is(err, fs.ErrNotExist) {
		return h.absent()
	}
	return err
}

func (h *Held) opened(access int, then func(*os.File) error) error {
	f, content, err := open(h.path, access)
	if errors.Is(err, ErrNotRegular) {
		return h.lost("replaced")
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	same, err := h.same(f)
	switch {
	case err != nil:
		return err
	case !same:
		return h.lost("replaced")
	case !bytes.Equal(content, h.content) && !bytes.Equal(content, h.pending):
		return h.lost("overwrote")
	}
	h.content = content
	return then(f)
}

// same reports whether a file that was opened by the name is the lock's. The token alone does not tell: a data file in
// the place of the lock has none.
func (h *Held) same(f *os.File) (bool, error) {
	if h.token == "" {
		now, err := f.Stat()
		if err != nil {
			return false, err
		}
		own, err := h.file.Stat()
		return err == nil && os.SameFile(now, own), err
	}
	kind, err := kindOfFile(f)
	if err != nil {
		return false, err
	}
	if kind != h.kind {
		return false, h.notMounted()
	}
	inode, err := inodeOf(f)
	if err != nil || inode != h.inode {
		return false, err
	}
	token, err := tokenOf(f) // another one: the name had another holder meanwhile
	return token == h.token || token == "", err
}

func (h *Held) notMounted() error {
	return fmt.Errorf("%s: the file system with the lock is not mounted", h.path)
}

// absent is a [LostError], unless the file system of the lock is not mounted.
func (h *Held) absent() error {
	kind, err := nearestKind(filepath.Dir(h.path))
	if err == nil && kind != h.kind {
		err = h.notMounted()
	}
	if err == nil {
		err = h.lost("removed")
	}
	return err
}

// nearestKind is the type of the file system of a directory, or of the next one above that there is.
func nearestKind(dir string) (int64, error) {
	kind, err := kindOf(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		return nearestKind(filepath.Dir(dir))
	}
	return kind, err
}

func (h *Held) lost(how string) error { return &LostError{Path: h.path, How: how} }
