// Package fileutil stands in for the package of github.com/coreos/etcd 3.3, which is no longer maintained. raft-wal imports it for one function.
// etcd's maintained module has that function in a package that needs a logging library as well.
package fileutil

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate reserves space on disk for a file of a size in bytes, and makes the file as long if extend says so. A file system that cannot
// reserve space gets a longer file only.
func Preallocate(file *os.File, size int64, extend bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if extend {
		mode = 0
	}
	err := unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err, _ = unix.Fallocate(int(file.Fd()), mode, 0, size).(unix.Errno)
	}
	switch {
	case err == 0:
		return nil
	case !errors.Is(err, unix.EOPNOTSUPP):
		return &os.PathError{Op: "fallocate", Path: file.Name(), Err: err}
	case !extend:
		return nil
	}
	info, failed := file.Stat()
	if failed != nil || info.Size() >= size {
		return failed
	}
	return file.Truncate(size)
}
