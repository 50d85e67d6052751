package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/types"

	"lockfs/cluster/atomicfile"
)

// Persist executes a write and returns its error. It may retry the write, as on a full disk.
type Persist func(write func() error) error

// Once executes a write once.
func Once(write func() error) error { return write() }

// segmentFiles creates and opens the segment files of the log. raft-wal becomes unusable if it cannot begin
// the next segment. It also takes the end of a segment for written after a failure. So persist hides retries
// from raft-wal.
type segmentFiles struct {
	types.VFS
	persist Persist
}

// Create implements types.VFS.
func (f segmentFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	var made types.WritableFile
	err := f.persist(func() error {
		var err error
		if made, err = f.VFS.Create(dir, name, size); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		return errors.Join(err, removeIfThere(filepath.Join(dir, name)))
	})
	if err != nil {
		return nil, err
	}
	return &segmentFile{WritableFile: made, dir: dir, persist: f.persist}, nil
}

// OpenWriter implements types.VFS. It syncs the directory: the previous process may have been killed before
// it did.
func (f segmentFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	if err := atomicfile.SyncDir(dir); err != nil {
		return nil, err
	}
	file, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &segmentFile{WritableFile: file, dir: dir, persist: f.persist}, nil
}

// segmentFile is the segment for new batches, each with one write and one fsync.
type segmentFile struct {
	types.WritableFile
	dir     string
	persist Persist

	batch []byte // last written batch; raft-wal does not change it before the sync
	at    int64
}

// WriteAt implements types.WritableFile.
func (f *segmentFile) WriteAt(batch []byte, at int64) (written int, err error) {
	f.batch, f.at = batch, at
	err = f.persist(func() (err error) {
		written, err = f.WritableFile.WriteAt(batch, at)
		return err
	})
	return written, err
}

// Sync implements types.WritableFile. After a failed sync the next one may succeed without the lost data: the
// batch or the file's name. So a retry writes the batch again and also syncs the directory.
func (f *segmentFile) Sync() error {
	isFirst := true
	return f.persist(func() error {
		if isFirst {
			isFirst = false
			return f.WritableFile.Sync()
		}
		if _, err := f.WritableFile.WriteAt(f.batch, f.at); err != nil {
			return err
		}
		if err := f.WritableFile.Sync(); err != nil {
			return err
		}
		return atomicfile.SyncDir(f.dir)
	})
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
