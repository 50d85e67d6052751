package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

// Persist does a write, and answers its error. It may do it again, as on a disk that was full.
type Persist func(write func() error) error

// Once writes once.
func Once(write func() error) error { return write() }

// segmentFiles are those of the log. raft-wal begins the next segment when one is full, and is of no use any more if it cannot.
type segmentFiles struct {
	*walfs.FS
	persist Persist
}

var _ types.VFS = segmentFiles{}

// Create is part of types.VFS.
func (f segmentFiles) Create(dir, name string, size uint64) (made types.WritableFile, err error) {
	err = f.persist(func() error {
		var err error
		if made, err = f.FS.Create(dir, name, size); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		return errors.Join(err, removeIfThere(filepath.Join(dir, name)))
	})
	return made, err
}

// removeIfThere removes a file that could not be made in its size.
func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
