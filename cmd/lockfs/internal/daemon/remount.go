package daemon

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// change is `mount -o remount`: the kernel's options of a mount that is there become those that are given. What its process
// was started with stays, and w is told so.
func (p *mountPlan) change(w io.Writer) error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV) // as they are unless something else is said
	for _, option := range p.options {
		switch option {
		case "ro":
			flags |= unix.MS_RDONLY
		case "rw":
			flags &^= unix.MS_RDONLY
		case "nosuid":
			flags |= unix.MS_NOSUID
		case "suid":
			flags &^= unix.MS_NOSUID
		case "nodev":
			flags |= unix.MS_NODEV
		case "dev":
			flags &^= unix.MS_NODEV
		case "noexec":
			flags |= unix.MS_NOEXEC
		case "exec":
			flags &^= unix.MS_NOEXEC
		}
	}
	if err := unix.Mount("", p.dir, "", flags, ""); err != nil {
		return fmt.Errorf("remount %s: %w", p.dir, err)
	}
	if len(p.fixed) > 0 {
		fmt.Fprintf(w, "lockfs: %s cannot change while it is mounted; umount %s and mount it again for that\n",
			strings.Join(p.fixed, ", "), p.dir)
	}
	return nil
}
