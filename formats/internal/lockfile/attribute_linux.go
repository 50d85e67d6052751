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

func tokenOf(f *os.File) (string, error) { return attribute(descriptor(f), "token") }

// kindOf is the type of the file system that a path is on (statfs(2)).
func kindOf(path string) (int64, error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(system.Type), nil //nolint:unconvert // on some processors it is of another type
}
