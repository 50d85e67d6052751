package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// Raft's timeouts leave room for a slow fsync: heartbeats wait for the disk too (see the package
// documentation), and an election because of a slow disk does not help.
const (
	heartbeatTimeout = 750 * time.Millisecond
	electionTimeout  = 750 * time.Millisecond
	leaseTimeout     = 750 * time.Millisecond
	commitTimeout    = 200 * time.Millisecond // with less, idle servers would be busy
)

// Open starts raft on a data directory, which must stay open. It does not start [Raft.TakeSnapshots] and
// [Raft.WatchDisk]. The error is a [DamagedError] if the directory is damaged.
func Open(dir *Directory, cfg Config) (*Raft, error) {
	files, state, err := openStorage(dir, &cfg)
	if err != nil {
		return nil, err
	}
	r := &Raft{cfg: cfg, id: raft.ServerID(dir.ID), files: files}
	if err := errors.Join(dir.followState(state), r.start(dir, state)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Raft) start(dir *Directory, state *namespace.Namespace) error {
	err := dir.enter(state.Version())
	if err != nil {
		return fmt.Errorf("note the version of the cluster: %w", err)
	}
	if err := dir.startInstance(r.files.space.retryWhenFull); err != nil {
		return err
	}
	if r.cfg.Addresses == nil {
		r.cfg.Addresses = NewLearnedAddresses()
	}
	r.Transport = newTransport(&r.cfg, dir, r.files)
	r.FSM = raftstore.NewFSM(state, string(r.id), r.cfg.CannotApply)
	r.FSM.Versions(dir.versions, r.recordVersion(dir.enter))
	logs, fsm := logCache(r.files.logs), configuredFSM{parallelFSM{r.FSM, r.files.logs}, r.cfg.Addresses}
	if r.Raft, err = r.newRaft(fsm, logs); err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	// Both have looked for the newest snapshot. With an older one raft would apply commands twice.
	last, err := strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	if err != nil || ids.Index(last) < r.files.snapshot.index {
		return fmt.Errorf("raft starts from the snapshot at index %d, and the state is that of index %d: start again", last, r.files.snapshot.index)
	}
	r.files.space.waits.Store(true)
	if over, ok := r.Transport.(transport); ok {
		r.files.logs.raft.Store(r.Raft)
		over.gate.start(r.Raft)
	}
	return nil
}

// newRaft calls raft.NewRaft in a goroutine, which ends if the disk fails (voteStore.SetUint64).
func (r *Raft) newRaft(fsm raft.FSM, logs raft.LogStore) (begun *raft.Raft, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		begun, err = raft.NewRaft(r.raftConfig(), fsm, logs, r.files.votes, r.files.snapshots, r.Transport)
	}()
	<-ended
	if begun == nil && err == nil {
		err = fmt.Errorf("write %s: %w", r.files.disk.path, r.files.votes.failed)
	}
	return begun, err
}

// recordVersion records a new cluster version. Like the log it waits for space: a full disk is no reason
// to end.
func (r *Raft) recordVersion(enter func(to uint32) error) func(to uint32) error {
	return func(to uint32) error {
		err := r.files.space.retryWhenFull(func() error { return enter(to) })
		if err != nil {
			err = fmt.Errorf("note the version of the cluster: %w", err)
			if !r.files.space.closed() {
				r.cfg.Fail(err)
			}
		}
		return err
	}
}

func (r *Raft) raftConfig() *raft.Config {
	cfg := raft.DefaultConfig()
	cfg.LocalID = r.id
	least := slog.LevelDebug
	cfg.HeartbeatTimeout, cfg.ElectionTimeout = heartbeatTimeout, electionTimeout
	cfg.LeaderLeaseTimeout, cfg.CommitTimeout = leaseTimeout, commitTimeout
	if r.cfg.Network == nil {
		least = slog.LevelError // raft warns when it elects itself, at each start
	}
	cfg.BatchApplyCh = true
	cfg.NoSnapshotRestoreOnStart = true    // the state machine starts with it
	cfg.SnapshotThreshold = math.MaxUint64 // TakeSnapshots decides
	cfg.TrailingLogs = r.trailingEntries()
	cfg.NotifyCh = r.cfg.Elected
	cfg.Logger = raftLogger(r.cfg.Logger, least)
	cfg.NoLegacyTelemetry = true
	return cfg
}

// WatchSpace maintains the disk reserve until ctx ends.
func (r *Raft) WatchSpace(ctx context.Context) { r.files.space.watch(ctx) }

// FreeSpace returns the recent free space besides the reserve, and the required one; 0: not checked.
func (r *Raft) FreeSpace() (free, minFree uint64) {
	return r.files.space.lastFree.Load(), r.cfg.MinFree
}

// IsFull reports whether a write waits for space: then this node takes no part in the cluster.
func (r *Raft) IsFull() bool { return r.files.space.isFull() }

// WatchDisk ends the process when a write takes too long, sooner on a leader with followers, until raft
// is closed.
func (r *Raft) WatchDisk() {
	r.files.disk.watch(func() bool { return r.State() == raft.Leader && len(r.VoterIDs()) > 1 })
}
