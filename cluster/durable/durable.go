// Package durable writes small files so that they are there after a power cut, as a whole.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Unfinished ends the name of a file that is being written.
const Unfinished = ".tmp"

// Replace puts a content in place of a file, or makes it. Only its owner may read it, whoever could read what was there. The directory may
// keep a file of that name with ".tmp" behind it when that is cut short.
func Replace(path string, content []byte) error {
	return ReplaceWith(path, func(file *os.File) error {
		_, err := file.Write(content)
		return err
	})
}

// ReplaceForAll is Replace for a file that all users may read.
func ReplaceForAll(path string, content []byte) error {
	return ReplaceWith(path, func(file *os.File) error {
		_, err := file.Write(content)
		return errors.Join(err, file.Chmod(0o644))
	})
}

// ReplaceWith is Replace with a content that write writes to an empty file, which it may also read. If write fails, the file at path stays as it
// is. Nothing that another user puts into the directory is followed or written to: neither a link nor a file under the temporary name.
func ReplaceWith(path string, write func(*os.File) error) error {
	temp := path + Unfinished
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Sync has a file that may have been left by a process that was killed, or by a sync that failed, be read as the disk has it: what was
// written and not synced is on the disk when it returns, or, where that could not be done, is no longer taken from memory.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close())
}

// SyncDir makes durable which names a directory has.
func SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
