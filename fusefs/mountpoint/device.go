package mountpoint

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// deviceNumber is the number of /dev/fuse (Linux's list of devices).
var deviceNumber = unix.Mkdev(10, 229)

// OpenDevice opens a connection to the kernel for a new mount.
func OpenDevice() (fd int, err error) {
	fd, err = unix.Open(fuseDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	return fd, os.NewSyscallError("open "+fuseDevice, err)
}

// Devices returns this process's descriptors of /dev/fuse, one for each of its mounts.
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

// NewDevice takes over the descriptor of the device that is not in before (see [TakeDevice]).
func NewDevice(before map[int]bool) (*os.File, error) {
	now, err := Devices()
	if err != nil {
		return nil, err
	}
	for fd := range now {
		if !before[fd] {
			return TakeDevice(fd)
		}
	}
	return nil, errors.New("no new descriptor of /dev/fuse")
}

// TakeDevice takes over a descriptor of the device. go-fuse keeps it private, leaves it open in child
// programs, and closes it later (a finalizer). TakeDevice leaves /dev/null under the old number.
func TakeDevice(fd int) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	device := os.NewFile(uintptr(own), fuseDevice)
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = errors.Join(os.NewSyscallError("dup3", unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC)), null.Close())
	}
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return device, nil
}
