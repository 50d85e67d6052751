package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostLinks is the maximum number of symbolic links in a path (MAXSYMLINKS).
const mostLinks = 40

// refuseBelow returns an error if a directory is the mount point or below it: a node cannot store its data in
// its own mount. It does not touch the mount.
func refuseBelow(what, flag, dir, mountDir string) error {
	mountDir, _, err := resolve(mountDir, "")
	if err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	_, below, err := resolve(dir, mountDir)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if below {
		return fmt.Errorf("the %s %s is inside the mount at %s: choose another %s", what, dir, mountDir, flag)
	}
	return nil
}

// resolve follows the symbolic links of a path, whose end may be missing. It stops at the directory stopAt, a
// path without symbolic links.
func resolve(path, stopAt string) (resolved string, stopped bool, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", false, err
	}
	const root = string(filepath.Separator)
	resolved = root
	rest := elements(path)
	for links := 0; len(rest) > 0; {
		next := filepath.Join(resolved, rest[0])
		if next == stopAt {
			return next, true, nil
		}
		target, err := os.Readlink(next)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.EINVAL): // no symbolic link
			resolved, rest = next, rest[1:]
			continue
		case err != nil:
			return "", false, err
		}
		if links++; links > mostLinks {
			return "", false, &os.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			resolved = root
		}
		rest = append(elements(target), rest[1:]...)
	}
	return resolved, false, nil
}

// elements returns the elements of a path without empty ones.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

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
