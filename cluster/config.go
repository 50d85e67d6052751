package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Config configures a node.
type Config struct {
	Name      string // unique among the members; letters, digits, '.', '_' and '-', at most 63
	DataDir   string
	Address   string // host:port to listen on; empty: a single node without network
	Advertise string // host:port at which others reach it; empty: Address
	Insecure  bool   // plain connections; every caller at the port is trusted
	Bootstrap bool   // bootstrap a new cluster ([Bootstrap]); ignored once the data directory belongs to one
	// Join lists addresses of members: to enter an insecure cluster, or to find members whose addresses
	// have changed.
	Join    []string
	Version string // of the program, for the status
	Logger  *slog.Logger
	Metrics *Metrics // may be nil

	// MaxInodes, MaxBytes, the shares of each user but root, and MaxSessions change the limits of the
	// cluster when this node leads; 0 leaves them unchanged. If the cluster never had a limit of bytes,
	// it gets a quarter of this node's memory.
	MaxInodes        uint64
	MaxBytes         uint64
	MaxInodesPerUser uint64
	MaxBytesPerUser  uint64
	MaxSessions      uint64
	// MaxLocksPerUser and MaxLocksPerFile limit the flock and fcntl locks of a user on a host, and of a
	// file. MaxSessionsPerHost limits the sessions of a host. When this node leads it changes them in the
	// cluster; 0 leaves them unchanged.
	MaxLocksPerUser    uint64
	MaxLocksPerFile    uint64
	MaxSessionsPerHost uint64
	// LockDelay changes how long the advisory locks of an expired mount stay blocked, when this node
	// leads; nil leaves it unchanged (namespace.DefaultLockDelay).
	LockDelay *time.Duration
	// Leases makes this node grant leases when it leads (package lease).
	Leases bool
	// ExpiredLeaseTerm is a term in which this node led before its start, and whose leases have all
	// expired (Node.TransferLeadership); 0: none.
	ExpiredLeaseTerm ids.Term
	// SessionTTL is how long a session lasts without a keepalive; 0: DefaultSessionTTL. Use the same
	// value on all nodes.
	SessionTTL time.Duration
	// Nonvoter makes the node join without a vote, until an administrator promotes it. It has no effect
	// on a member.
	Nonvoter bool
	// RemoveDead makes this node, when it leads, remove a server after this time without an answer, if at
	// least two voters are left and a majority of them answers; 0: never.
	RemoveDead time.Duration
	// SnapshotEntries is the minimum number of log entries between two snapshots; 0: 8192.
	SnapshotEntries uint64

	// MinFree is the space in bytes to keep free on the disk of the data directory; with less, the
	// cluster allows no growth. A part of it is a reserve file. 0: not checked.
	MinFree uint64

	// BackupDir is the directory of this node's scheduled backups; empty: none. BackupKeep is how many to
	// keep.
	BackupDir   string
	BackupEvery time.Duration
	BackupKeep  int

	// A simulation replaces parts of the host. Network connects the nodes; nil: TCP. Clock is the wall
	// clock; nil: the kernel's. Writing does each write of the log and of votes, as in consensus.Config.
	Network rpc.Network
	Clock   func() time.Time
	Writing func(write func() error) error

	// entries lets tests wrap the log on disk; nil: no wrapper.
	entries func(raft.LogStore) raft.LogStore
	// versions are the cluster versions known to the program; zero: version.Own.
	versions version.Range
	// validity of the certificates that this node issues; 0: identity.Validity.
	validity time.Duration
}

// leastRemoveDead is longer than the restart of a server takes.
const leastRemoveDead = 10 * time.Second

func (c *Config) certificateValidity() time.Duration {
	return cmp.Or(c.validity, identity.Validity)
}

func (c *Config) validate() error {
	if !consensus.ValidName(c.Name) {
		return fmt.Errorf("node name %q: it takes 1 to 63 letters, digits, '.', '_' and '-'; give another with --name", c.Name)
	}
	if c.versions == (version.Range{}) {
		c.versions = version.Own()
	}
	if c.DataDir == "" {
		return errors.New("no data directory is given")
	}
	if c.RemoveDead != 0 && c.RemoveDead < leastRemoveDead {
		return fmt.Errorf("dead servers are removed after %v at least, not after %v", leastRemoveDead, c.RemoveDead)
	}
	if c.BackupDir != "" && (c.BackupEvery < time.Second || c.BackupKeep < 1) {
		return errors.New("backups are made every second at most, and one is kept at least")
	}
	if c.Address == "" {
		return nil
	}
	if c.Advertise == "" {
		c.Advertise = c.Address
	}
	return checkAdvertised(c.Advertise)
}

// insecure reports whether every caller at this node's port is trusted.
func (c *Config) insecure() bool { return c.Address != "" && c.Insecure }

// checkAdvertised returns an error for an address that other nodes cannot use.
func checkAdvertised(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: write it like 10.0.0.1:7420", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("address %q: give the address at which the other nodes reach this one with --advertise", address)
	}
	return nil
}

// limits returns the limits that this node sets when it leads.
func (c *Config) limits(fsm *raftstore.FSM) *storepb.SetLimits {
	limits := &storepb.SetLimits{
		MaxInodes: c.MaxInodes, MaxInodesPerUser: c.MaxInodesPerUser,
		MaxBytes: c.MaxBytes, MaxBytesPerUser: c.MaxBytesPerUser,
		MaxSessions: c.MaxSessions, LockDelay: (*int64)(c.LockDelay),
		MaxLocksPerUser: c.MaxLocksPerUser, MaxLocksPerFile: c.MaxLocksPerFile, MaxSessionsPerHost: c.MaxSessionsPerHost,
	}
	fsm.View(func(ns *namespace.Namespace) {
		if limits.GetMaxBytes() == 0 && !ns.BytesLimited() {
			limits.MaxBytes = max(Memory()/memoryShare, namespace.DefaultMaxBytes)
		}
		if ns.MayLease() != c.Leases {
			limits.Leases = &c.Leases
		}
	})
	return limits
}
