package mountpoint

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// InFstab returns the directories for lockfs mounts in a file like /etc/fstab, under either name of its type.
func InFstab(file string) (dirs []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && !strings.HasPrefix(fields[0], "#") && (fields[2] == FSType || fields[2] == "fuse."+FSType) {
			dirs = append(dirs, unescape(fields[1]))
		}
	}
	return dirs, nil
}

// MountedAt reports whether lockfs is mounted at a directory, dead or alive. It triggers an automount there,
// and asks no lockfs mount.
func MountedAt(dir string) (bool, error) {
	path, err := Resolve(dir)
	if err != nil {
		return false, err
	}
	stack, err := mountsAt(path)
	return err == nil && len(stack) > 0 && stack[len(stack)-1].isOurs(), err
}

// Resolve returns the path of a directory without symbolic links. It triggers automounts on the way.
func Resolve(dir string) (string, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return pathOf(fd)
}
