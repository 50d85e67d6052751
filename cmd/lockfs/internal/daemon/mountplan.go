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
	source    string // what /proc/mounts says; empty: the servers
	dir       string
	host      string
	opTimeout time.Duration
	wait      time.Duration // for the cluster, before giving up
	limits    fusefs.Limits // of its users
	options   []string      // of the file system: nodev, nosuid, noexec, ...
	logs      cli.LogFlags
	httpAddr  string // empty: none
	insecure  bool
	identity  string          // directory; empty: that of this user
	token     *identity.Token // to enter the cluster with; nil: none
	remount   bool            // only change the options of the file system
	fixed     []string        // other options that were given for that

	keeper  *enrolment.MountRenewer         // nil: plain connections
	protect func(net.Listener) net.Listener // of its HTTP; nil: there are no certificates
}

const defaultMountWait = time.Minute
