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

// LostError is the loss of a lock by this process.
type LostError struct {
	Path string
	How  string // the change by another program: a verb
}

// Error describes the change.
func (e *LostError) Error() string { return fmt.Sprintf("another program %s %s", e.How, e.Path) }

// Held is a lock acquired by this process. On a lockfs mount its inode number identifies it. Inode numbers
// are never reused and are equal on all hosts, so the check also works after a new mount. Other file systems
// reuse inode numbers, but not while the file is open, so there Held keeps it open.
type Held struct {
	path    string
	content []byte   // of the last successful write
	pending []byte   // of the last write, which may have taken effect despite its error
	token   string   // empty on other file systems
	inode   uint64   // with a token
	file    *os.File // without a token; on a mount, an open file would suppress inotify events of removals on other hosts
	kind    int64    // of the file system
}

// Hold returns the lock at path, just created by this process with this content. After an error the lock is
// removed.
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

// Token returns the fencing token; empty on other file systems.
func (h *Held) Token() string { return h.token }

// Path returns the absolute path of the file.
func (h *Held) Path() string { return h.path }

// Check returns nil if the lock exists with the content written by this process, and a [LostError] if not.
// Any other error proves nothing. A mount without quorum does not answer, and a restarting daemon is absent
// for a moment, but the lock stays.
func (h *Held) Check(ctx context.Context) error {
	return h.open(ctx, os.O_RDONLY, func(*os.File) error { return nil })
}

// Rewrite replaces the content by one of the same length. Readers see one of the two. Rewrite writes to the
// open file of this lock, so another file with the same name is not changed.
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

// Release removes the lock. The error is a [LostError] if the name has another file or none.
func (h *Held) Release(ctx context.Context) error {
	err := h.open(ctx, os.O_RDONLY, func(f *os.File) error { return Remove(h.path, f) })
	var lost *LostError
	if err == nil || errors.As(err, &lost) {
		h.Close()
	}
	return err
}

// Close forgets the lock without removing it. Release does the same.
func (h *Held) Close() {
	if h.file != nil {
		_ = h.file.Close()
	}
	h.file = nil
}

// open opens the file, checks its identity, and calls then. Until then returns, no other user of
// LockDir on this host changes the directory.
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

// same reports whether a file opened by name is this lock. A token is not enough: a data file in the place of
// the lock has none.
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
	token, err := tokenOf(f) // another lock: the name had another holder in between
	return token == h.token || token == "", err
}

func (h *Held) notMounted() error {
	return fmt.Errorf("%s: the file system with the lock is not mounted", h.path)
}

// absent returns a [LostError], or another error if the file system is not mounted.
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

// nearestKind returns the type of the file system of a directory, or of its nearest existing parent.
func nearestKind(dir string) (int64, error) {
	kind, err := kindOf(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		return nearestKind(filepath.Dir(dir))
	}
	return kind, err
}

func (h *Held) lost(how string) error { return &LostError{Path: h.path, How: how} }
