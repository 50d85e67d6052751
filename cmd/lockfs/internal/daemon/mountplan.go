package daemon

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs"
)

// mountPlan is a mount without a voter.
type mountPlan struct {
	servers   []string
	source    string // device name in /proc/mounts; empty: the servers
	dir       string
	host      string
	opTimeout time.Duration
	wait      time.Duration // time limit for the cluster's first reply
	limits    fusefs.Limits // of its users
	options   []string      // of the file system: nodev, nosuid, noexec, ...
	logs      cli.LogFlags
	httpAddr  string // empty: no HTTP
	insecure  bool
	identity  string          // directory; empty: the default of this user
	token     *identity.Token // to join with, or nil
	remount   bool            // only change the options of the file system
	fixed     []string        // other options of a remount

	keeper  *certrenew.MountRenewer         // nil: plain connections
	protect func(net.Listener) net.Listener // for HTTP; nil without certificates
}

const defaultMountWait = time.Minute

// addLimits adds the flags for the budgets of a mount's users.
func addLimits(flags *pflag.FlagSet, limits *fusefs.Limits) {
	flags.Uint64Var(&limits.CallsPerUser, fusefs.CallsFlag, fusefs.DefaultCallsPerUser,
		"limit of system calls of one user in progress on the mount; further ones wait")
	flags.Uint64Var(&limits.WaitsPerUser, fusefs.WaitsFlag, fusefs.DefaultWaitsPerUser,
		"limit of one user's waits for locks and reads in .lockfs; then ENOLCK")
}

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
