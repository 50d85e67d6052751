package admin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountRoot answers where the mount of lockfs is that a directory, given without symbolic links, is on.
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
		return "", fmt.Errorf("it is not on a mount of lockfs, but on what is mounted at %s; use rm (`lockfs doctor` tells where lockfs is mounted)",
			root)
	}
	return root, nil
}

// controlDir is what a mount has at its root, not listed.
const controlDir = ".lockfs"

// LockAttribute is what a mount of lockfs knows of a lock; empty where there is nothing, which is anywhere else.
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
