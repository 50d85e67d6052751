package daemon

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// change is `mount -o remount`: it replaces the kernel's options of a mount. Options of its process stay,
// with a message to w.
func (p *mountPlan) change(w io.Writer) error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV) // the defaults
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
		fmt.Fprintf(w, "lockfs: %s cannot change while mounted: run umount %s and mount it again\n",
			strings.Join(p.fixed, ", "), p.dir)
	}
	return nil
}
