package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Config is what a node is started with.
type Config struct {
	Name        string // unique among the members; letters, digits, '.', '_' and '-', at most 63
	DataDir     string
	RaftAddress string // host:port that the other voters reach; empty: a single node without network
	APIAddress  string // host:port that nodes, mounts and commands reach
	Bootstrap   bool   // begin a new cluster; ignored once the data directory belongs to one
	Join        []string
	Version     string // of the program, shown in the status
	Logger      *slog.Logger
	Metrics     *Metrics // may be nil

	// MaxInodes, MaxBytes, what of them each user but root may have, and MaxSessions change the cluster's limits when this node
	// leads; 0 leaves them. Where no limit of bytes was ever set, it becomes a quarter of this node's memory.
	MaxInodes        uint64
	MaxBytes         uint64
	MaxInodesPerUser uint64
	MaxBytesPerUser  uint64
	MaxSessions      uint64
	// LockDelay changes for how long nobody gets an advisory lock of a mount that was given up on, when this
	// node leads; nil leaves it (namespace.DefaultLockDelay).
	LockDelay *time.Duration
	// SessionTTL is how long a session lasts without a keepalive; 0: DefaultSessionTTL. It is to be
	// the same on all nodes.
	SessionTTL time.Duration
	// SnapshotEntries is the least number of log entries after which a snapshot is taken; 0: 8192.
	SnapshotEntries uint64

	// entries lets tests put something between a log and its disk; nil: nothing.
	entries func(raft.LogStore) raft.LogStore
}

func (c *Config) validate() error {
	if !consensus.ValidName(c.Name) {
		return fmt.Errorf("node name %q: it takes 1 to 63 letters, digits, '.', '_' and '-'", c.Name)
	}
	if c.DataDir == "" {
		return errors.New("no data directory is given")
	}
	for _, address := range []struct{ what, value string }{
		{"raft address", c.RaftAddress}, {"API address", c.APIAddress},
	} {
		if address.value == "" && c.RaftAddress == "" {
			continue
		}
		if err := checkAdvertised(address.what, address.value); err != nil {
			return err
		}
	}
	return nil
}

// checkAdvertised refuses an address that other nodes could not use.
func checkAdvertised(what, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q: %w", what, address, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%s %q: give the address at which the other nodes reach this one", what, address)
	}
	return nil
}

// limits are those that this node is to set when it leads.
func (c *Config) limits(fsm *raftstore.FSM) *storepb.SetLimits {
	limits := &storepb.SetLimits{
		MaxInodes: c.MaxInodes, MaxInodesPerUser: c.MaxInodesPerUser,
		MaxBytes: c.MaxBytes, MaxBytesPerUser: c.MaxBytesPerUser,
		MaxSessions: c.MaxSessions, LockDelay: (*int64)(c.LockDelay),
	}
	fsm.View(func(ns *namespace.Namespace) {
		if limits.GetMaxBytes() == 0 && !ns.BytesLimited() {
			limits.MaxBytes = max(Memory()/memoryShare, namespace.DefaultMaxBytes)
		}
	})
	return limits
}
