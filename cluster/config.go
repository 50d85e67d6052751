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

// Config is what a node is started with.
type Config struct {
	Name      string // unique among the members; letters, digits, '.', '_' and '-', at most 63
	DataDir   string
	Address   string // host:port where it listens for all that other hosts say; empty: a single node without network
	Advertise string // host:port where others reach it; empty: Address
	Insecure  bool   // connections are plain and whoever reaches the port is trusted
	Bootstrap bool   // bootstrap a new cluster ([Bootstrap]); ignored once the data directory belongs to one
	// Join are addresses of members, to enter an insecure cluster (else the identity has them), or where a node of any cluster
	// finds others again that have other addresses now.
	Join    []string
	Version string // of the program, shown in the status
	Logger  *slog.Logger
	Metrics *Metrics // may be nil

	// MaxInodes, MaxBytes, what of them each user but root may have, and MaxSessions change the cluster's limits when this node
	// leads; 0 leaves them. Where no limit of bytes was ever set, it becomes a quarter of this node's memory.
	MaxInodes        uint64
	MaxBytes         uint64
	MaxInodesPerUser uint64
	MaxBytesPerUser  uint64
	MaxSessions      uint64
	// MaxLocksPerUser and MaxLocksPerFile bound the flock and fcntl locks of a user on a host, and in one file; MaxSessionsPerHost the
	// sessions of a host. This node changes them in the cluster when it leads; 0 leaves them.
	MaxLocksPerUser    uint64
	MaxLocksPerFile    uint64
	MaxSessionsPerHost uint64
	// LockDelay changes for how long nobody gets an advisory lock of a mount that was given up on, when this
	// node leads; nil leaves it (namespace.DefaultLockDelay).
	LockDelay *time.Duration
	// Leases says that this node, when it leads, gives mounts leases on what it answers them (package lease).
	Leases bool
	// ExpiredLeaseTerm is a term in which this node led before it was started, of which no lease lasts any more (Node.TransferLeadership); 0: there is none.
	ExpiredLeaseTerm ids.Term
	// SessionTTL is how long a session lasts without a keepalive; 0: DefaultSessionTTL. It is to be
	// the same on all nodes.
	SessionTTL time.Duration
	// Nonvoter has a node join without a vote, which it does not get either until an administrator gives it one. It is ignored
	// once the node is a member.
	Nonvoter bool
	// RemoveDead is after how much time without an answer this node, when it leads, removes another one, if a majority of those
	// that are left answers and they are two voters or more; 0: never.
	RemoveDead time.Duration
	// SnapshotEntries is the least number of log entries after which a snapshot is taken; 0: 8192.
	SnapshotEntries uint64

	// MinFree is how many bytes are to be free on the disk of the data directory: with less the cluster lets nothing grow. A part of
	// it is kept in reserve. 0: nobody looks.
	MinFree uint64

	// BackupDir is where this node makes a backup every so often by itself, of which it keeps the last ones; empty: nowhere.
	BackupDir   string
	BackupEvery time.Duration
	BackupKeep  int

	// What a simulation has in place of a host. Network is how others are reached, and reach this node; nil: TCP. Clock is the wall
	// clock; nil: the kernel's. Writing does each write of the log and of votes, as in consensus.Config.
	Network rpc.Network
	Clock   func() time.Time
	Writing func(write func() error) error

	// entries lets tests put something between a log and its disk; nil: nothing.
	entries func(raft.LogStore) raft.LogStore
	// versions are those of a cluster that the program knows; none: version.Own.
	versions version.Range
	// validity is that of the certificates that this node gives when it leads; 0: identity.Validity.
	validity time.Duration
}

// leastRemoveDead is longer than a server takes to start again.
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

// insecure tells whether whoever reaches this node's port is trusted.
func (c *Config) insecure() bool { return c.Address != "" && c.Insecure }

// checkAdvertised refuses an address that other nodes could not use.
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

// limits are those that this node is to set when it leads.
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
