package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func lookAtFuse(_ context.Context, h *host) []Finding {
	device := h.path("dev/fuse")
	err := h.openDevice(device)
	switch {
	case err == nil:
		return one(ok("%s can be opened", device))
	case errors.Is(err, fs.ErrNotExist):
		return one(failed("load the module (modprobe fuse); start a container with --device /dev/fuse", "%s is missing: no mount is possible", device))
	case errors.Is(err, fs.ErrPermission):
		return one(failed("mount as root, or let this user open it (chmod 0666 "+device+", as most distributions have it)",
			"%s cannot be opened by uid %d", device, h.uid))
	case errors.Is(err, unix.ENODEV):
		return one(failed("load the module: modprobe fuse", "the kernel has no driver for %s", device))
	}
	return one(failed("check the device", "%s cannot be opened: %v", device, err))
}

func openDevice(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	return unix.Close(fd)
}

func lookAtFusermount(_ context.Context, h *host) []Finding {
	path, err := h.lookPath("fusermount3")
	if err == nil {
		return one(ok("%s is installed, for users other than root", path))
	}
	const advice = "install it (Debian: apt install fuse3)"
	if h.uid == 0 {
		return one(ok("fusermount3 is missing: only root can mount"))
	}
	return one(failed(advice, "fusermount3 is missing: only root can mount"))
}

func lookAtAllowOther(_ context.Context, h *host) []Finding {
	path := h.path("etc/fuse.conf")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return one(unknown("", "%s cannot be read: %v", path, err))
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "user_allow_other" {
			return one(ok("%s has user_allow_other", path))
		}
	}
	return one(ok("%s has no user_allow_other: mounts of users are only for themselves, mounts of root for all", path))
}
