package lockfile

import (
	"os"
	"strconv"
	"syscall"
)

// Attribute is what a mount of lockfs knows of a lock, such as its state; empty anywhere else.
func Attribute(path, name string) string {
	value := make([]byte, 256)
	n, err := syscall.Getxattr(path, "user.lockfs."+name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// AttributeOf is [Attribute] of this very file, whatever has its name.
func AttributeOf(f *os.File, name string) string {
	return Attribute("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), name)
}
