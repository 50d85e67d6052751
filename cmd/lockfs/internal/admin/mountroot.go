package admin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountRoot returns the root of the lockfs mount with a directory, whose path has no symbolic links.
func mountRoot(dir string) (string, error) {
	var own, above unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	root := dir
	for root != "/" {
		parent := filepath.Dir(root)
		if err := unix.Stat(parent, &above); err != nil {
			return "", &os.PathError{Op: "stat", Path: parent, Err: err}
		}
		if above.Dev != own.Dev {
			break
		}
		root = parent
	}
	var system unix.Statfs_t
	if err := unix.Statfs(root, &system); err != nil {
		return "", &os.PathError{Op: "statfs", Path: root, Err: err}
	}
	control, err := os.Lstat(filepath.Join(root, controlDir))
	if system.Type != unix.FUSE_SUPER_MAGIC || err != nil || !control.IsDir() {
		return "", fmt.Errorf("it is not on a mount of lockfs, but on the file system at %s; use rm (`lockfs doctor` lists the mounts of lockfs)",
			root)
	}
	return root, nil
}

// controlDir is the hidden directory at the root of a mount.
const controlDir = ".lockfs"

// LockAttribute reads an extended attribute of a lock; empty outside of lockfs or without a value.
func LockAttribute(path, name string) (string, error) {
	var value [1024]byte
	n, err := unix.Lgetxattr(path, "user.lockfs."+name, value[:])
	switch {
	case errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP):
		return "", nil
	case err != nil:
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	}
	return string(value[:n]), nil
}
