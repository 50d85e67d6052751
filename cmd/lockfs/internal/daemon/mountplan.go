package daemon

import (
	"net"
	"time"

	"lockfs/cluster/enrolment"
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

	keeper  *enrolment.MountRenewer         // nil: plain connections
	protect func(net.Listener) net.Listener // for HTTP; nil without certificates
}

const defaultMountWait = time.Minute
