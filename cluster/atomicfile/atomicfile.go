// Package atomicfile replaces small files atomically and durably: a power cut leaves the old or the new file.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Unfinished is the suffix of a file during the write.
const Unfinished = ".tmp"

// Replace creates or replaces a file. The new file is readable by its owner only, with any previous mode. A
// crash may leave a file with the suffix [Unfinished].
func Replace(path string, content []byte) error {
	return ReplaceWith(path, func(file *os.File) error {
		_, err := file.Write(content)
		return err
	})
}

// ReplaceForAll is Replace for a file readable by all users.
func ReplaceForAll(path string, content []byte) error {
	return ReplaceWith(path, func(file *os.File) error {
		_, err := file.Write(content)
		return errors.Join(err, file.Chmod(0o644))
	})
}

// ReplaceWith is Replace with a function which writes the contents to an empty file, and may read it. If
// write fails, the file at path does not change. ReplaceWith follows no links in the directory, and does not
// write to files of other users under the temporary name.
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

// Sync makes sure later reads return the contents on disk. A killed process or a failed sync may have left
// unsynced pages: Sync writes them, or drops them from the page cache.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close())
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
