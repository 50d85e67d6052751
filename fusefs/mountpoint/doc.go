// Package mountpoint knows mounts as the kernel has them, apart from what is in them: the directories where lockfs is mounted, what a
// dead process left there, and the connection to the kernel by which another process can end a mount. It asks no file system
// anything but whether it is alive, which may be one that this very process serves.
//
// The bare directory of a mount point must never give a program a lock ([Protect], [Place]). With a mount on top, neither a path nor a
// descriptor detaches a lower one, so a new mount goes beneath a dead one, and the dead one is detached then. What is below a mount is
// reached in a copy of the parent's mount (open_tree). The tmpfs is used on network file systems too, where the design has no protection:
// it is this host's alone, and better than none.
package mountpoint

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

const (
	// FSType is the type of the mounts, "fuse.lockfs" in /proc/mounts.
	FSType = "lockfs"

	fuseDevice = "/dev/fuse"
	fusermount = "fusermount3"
)

// CheckFuse says in plain words what the attempt to mount would fail with.
func CheckFuse() error {
	if err := unix.Access(fuseDevice, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%s cannot be used: %w", fuseDevice, err)
	}
	if _, err := exec.LookPath(fusermount); err != nil && !Privileged() {
		return fmt.Errorf("users other than root need %s (Debian package fuse3)", fusermount)
	}
	return nil
}

// Privileged tells whether this process can mount by itself, and for all users.
func Privileged() bool { return os.Geteuid() == 0 }
