package lockfile

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Attribute returns an attribute of a lock from its lockfs mount, such as its state; empty on other file
// systems.
func Attribute(path, name string) string {
	value, _ := attribute(path, name)
	return value
}

// AttributeOf is [Attribute] for an open file, even if its name has another file now.
func AttributeOf(f *os.File, name string) string { return Attribute(descriptor(f), name) }

func descriptor(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// attribute returns an error if the attribute cannot be read. A missing attribute is empty.
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

// isOnMount reports whether a file is a lock on a lockfs mount. It asks only for the size of an attribute.
// Reading the value would count as a look at the lock, and a later removal by this program would then refer
// to that lock.
func isOnMount(f *os.File) bool {
	n, err := syscall.Getxattr(descriptor(f), "user.lockfs.state", nil)
	return err == nil && n > 0
}

func tokenOf(f *os.File) (string, error) { return attribute(descriptor(f), "token") }

// inodeOf returns the inode number of an open file.
func inodeOf(f *os.File) (uint64, error) {
	var status syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &status); err != nil {
		return 0, &os.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	return status.Ino, nil
}

// kindOfFile is [kindOf] for an open file.
func kindOfFile(f *os.File) (int64, error) {
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &system); err != nil {
		return 0, &os.PathError{Op: "fstatfs", Path: f.Name(), Err: err}
	}
	return int64(system.Type), nil //nolint:unconvert // another type on some processors
}

// kindOf returns the type of the file system of a path (statfs(2)).
func kindOf(path string) (int64, error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(system.Type), nil //nolint:unconvert // another type on some processors
}
