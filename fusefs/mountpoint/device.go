package mountpoint

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// deviceNumber is that of /dev/fuse (Linux's list of devices).
var deviceNumber = unix.Mkdev(10, 229)

// Devices answers this process's descriptors of /dev/fuse, one for each of its mounts.
func Devices() (map[int]bool, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	devices := make(map[int]bool)
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == deviceNumber {
			devices[fd] = true
		}
	}
	return devices, nil
}

// NewDevice answers a descriptor of its own for the device that is not among those before. go-fuse keeps
// the one that it uses to itself, and leaves it open in programs that this process starts, which is mended here.
func NewDevice(before map[int]bool) (*os.File, error) {
	now, err := Devices()
	if err != nil {
		return nil, err
	}
	for fd := range now {
		if before[fd] {
			continue
		}
		unix.CloseOnExec(fd)
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		return os.NewFile(uintptr(own), fuseDevice), nil
	}
	return nil, errors.New("no new descriptor of /dev/fuse")
}
