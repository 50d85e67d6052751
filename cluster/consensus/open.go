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

// Raft's times. They give a slow fsync room: heartbeats wait for the disk like everything else (see
// the package documentation), and an election that nothing but a slow disk caused helps nobody.
const (
	heartbeatTimeout = 750 * time.Millisecond
	electionTimeout  = 750 * time.Millisecond
	leaseTimeout     = 750 * time.Millisecond
	commitTimeout    = 200 * time.Millisecond // idle servers would be busy with less
)

// Open starts raft on a data directory, which must stay open as long as it runs. Nobody takes snapshots or watches the disk
// yet ([Raft.TakeSnapshots], [Raft.WatchDisk]). The error is a [DamagedError] when the directory is.
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
	// Both have looked for the newest snapshot. With an older one raft would apply commands again.
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

// newRaft is raft.NewRaft, in a goroutine that ends if the disk fails then (voteStore.SetUint64).
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

// recordVersion is how a new version of the cluster is noted. That waits for space as the log does: a full disk is no reason to end.
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
		least = slog.LevelError // raft warns of electing itself, as it does at each start
	}
	cfg.BatchApplyCh = true
	cfg.NoSnapshotRestoreOnStart = true    // the state machine begins with it
	cfg.SnapshotThreshold = math.MaxUint64 // TakeSnapshots decides
	cfg.TrailingLogs = r.trailingEntries()
	cfg.NotifyCh = r.cfg.Elected
	cfg.Logger = raftLogger(r.cfg.Logger, least)
	cfg.NoLegacyTelemetry = true
	return cfg
}

// WatchSpace keeps a reserve of space until the context ends.
func (r *Raft) WatchSpace(ctx context.Context) { r.files.space.watch(ctx) }

// FreeSpace is how many bytes were free on the disk a moment ago besides the reserve, and how many should be; 0: nobody looks.
func (r *Raft) FreeSpace() (free, minFree uint64) {
	return r.files.space.lastFree.Load(), r.cfg.MinFree
}

// IsFull tells whether this node takes no part in the cluster, since a write waits for space on its disk.
func (r *Raft) IsFull() bool { return r.files.space.isFull() }

// WatchDisk ends the process when a write takes too long, until raft is closed: sooner while others wait for this node as
// their leader.
func (r *Raft) WatchDisk() {
	r.files.disk.watch(func() bool { return r.State() == raft.Leader && len(r.VoterIDs()) > 1 })
}
