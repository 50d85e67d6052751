package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/types"

	"lockfs/cluster/durable"
)

// Persist does a write, and answers its error. It may do it again, as on a disk that was full.
type Persist func(write func() error) error

// Once writes once.
func Once(write func() error) error { return write() }

// segmentFiles are those of the log. raft-wal is of no use any more if it cannot begin the next segment when one is full, or if it cannot
// write that a segment has ended, which it takes for written from then on. So it does not learn of a write that is done again.
type segmentFiles struct {
	types.VFS
	persist Persist
}

// Create is part of types.VFS.
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

// OpenWriter is part of types.VFS. The process before may have been killed before it synced the file's name.
func (f segmentFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	if err := durable.SyncDir(dir); err != nil {
		return nil, err
	}
	file, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &segmentFile{WritableFile: file, dir: dir, persist: f.persist}, nil
}

// segmentFile is that to which batches are added, each with one write and one fsync.
type segmentFile struct {
	types.WritableFile
	dir     string
	persist Persist

	batch []byte // that was written last; raft-wal leaves it as it is until it is synced
	at    int64
}

// WriteAt is part of types.WritableFile.
func (f *segmentFile) WriteAt(batch []byte, at int64) (written int, err error) {
	f.batch, f.at = batch, at
	err = f.persist(func() (err error) {
		written, err = f.WritableFile.WriteAt(batch, at)
		return err
	})
	return written, err
}

// Sync is part of types.WritableFile. After a sync that failed the next one may succeed without what the first one did not get to the disk,
// be it the batch or the name of the file. So the batch is written once more, and the directory synced.
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
		return durable.SyncDir(f.dir)
	})
}

// removeIfThere removes a file that could not be made in its size.
func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
