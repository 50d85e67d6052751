package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Defaults of --min-free: a number of bytes, or a share of a small disk.
const (
	defaultMinFree = 256 << 20 // bytes
	minFreePart    = 16
)

// minFreeOf returns the default for a data directory, which may be missing.
func minFreeOf(dir string) (uint64, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		var disk unix.Statfs_t
		err := unix.Statfs(path, &disk)
		if err == nil {
			return min(defaultMinFree, disk.Blocks*uint64(disk.Bsize)/minFreePart), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return 0, fmt.Errorf("data directory: %w", &fs.PathError{Op: "statfs", Path: path, Err: err})
		}
		path = filepath.Dir(path)
	}
}
