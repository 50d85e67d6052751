// Package mountpoint handles mounts in the kernel, apart from their content. It finds the directories with
// lockfs mounts, cleans up after dead processes, and has the connection with which another process can end a
// mount. It asks a file system only whether it is alive, as this very process may serve it.
//
// The bare directory of a mount point must never give a program a lock ([Protect], [Place]). Neither a path
// nor a descriptor detaches a mount under another one. So a new mount goes beneath a dead one, and then the
// dead one is detached. A copy of the parent's mount (open_tree) gives access below a mount. On network file
// systems a tmpfs protects the directory, for this host only.
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

// CheckFuse returns, in plain words, the error that a mount would get.
func CheckFuse() error {
	if err := unix.Access(fuseDevice, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%s cannot be used: %w", fuseDevice, err)
	}
	if _, err := exec.LookPath(fusermount); err != nil && !Privileged() {
		return fmt.Errorf("users other than root need %s (Debian package fuse3)", fusermount)
	}
	return nil
}

// Privileged reports whether this process can mount by itself, and for all users.
func Privileged() bool { return os.Geteuid() == 0 }
