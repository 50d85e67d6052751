package lockfile

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Attribute is what a mount of lockfs knows of a lock, such as its state; empty anywhere else.
func Attribute(path, name string) string {
	value, _ := attribute(path, name)
	return value
}

// AttributeOf is [Attribute] of this very file, whatever has its name.
func AttributeOf(f *os.File, name string) string { return Attribute(descriptor(f), name) }

func descriptor(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// attribute tells an attribute that is not there from one that cannot be read.
func attribute(path, name string) (string, error) {
	value := make([]byte, 256)
	n, err := syscall.Getxattr(path, "user.lockfs."+name, value)
	if errors.Is(err, syscall.ENODATA) || errors.Is(err, syscall.ENOTSUP) {
		return "", nil
	}
	if err != nil {
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	}
	return string(value[:n]), nil
}

// isOnMount reports whether a file is a lock on a mount of lockfs. It asks for the size of an attribute only. Reading the value would be
// a look at the lock, and a later removal by this program would then mean that lock.
func isOnMount(f *os.File) bool {
	n, err := syscall.Getxattr(descriptor(f), "user.lockfs.state", nil)
	return err == nil && n > 0
}

func tokenOf(f *os.File) (string, error) { return attribute(descriptor(f), "token") }

// inodeOf is the number of an open file's inode.
func inodeOf(f *os.File) (uint64, error) {
	var status syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &status); err != nil {
		return 0, &os.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	return status.Ino, nil
}

// kindOfFile is [kindOf] an open file.
func kindOfFile(f *os.File) (int64, error) {
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &system); err != nil {
		return 0, &os.PathError{Op: "fstatfs", Path: f.Name(), Err: err}
	}
	return int64(system.Type), nil //nolint:unconvert // on some processors it is of another type
}

// kindOf is the type of the file system that a path is on (statfs(2)).
func kindOf(path string) (int64, error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(system.Type), nil //nolint:unconvert // on some processors it is of another type
}
