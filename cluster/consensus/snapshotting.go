package consensus

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

const (
	defaultSnapshotEntries = 8192
	defaultSnapshotBytes   = 64 << 20
	snapshotInterval       = 2 * time.Second // between looks at the number of entries
	// While the disk is short of space the log of a small state is kept smaller. That of a large one is not: its snapshots take more
	// space than the log does, and would never end.
	shortSnapshotEntries = 1024
	shortSnapshotBytes   = 4 << 20
	// A snapshot writes the whole state: what it costs is spread over an entry for this many inodes.
	inodesPerEntry = 8
)

// TakeSnapshots takes one whenever it is due, until the context ends. Raft itself would count entries only, and an entry may
// have any size from some bytes to a quarter of a MiB.
func (r *Raft) TakeSnapshots(ctx context.Context) {
	ticker := time.NewTicker(snapshotInterval)
	defer ticker.Stop()
	grown, slack := r.files.sizes.grown, rand.Float64()
	for {
		select {
		case <-r.files.space.released:
			r.takeSnapshot()
			continue
		case <-grown:
		case <-ticker.C:
			grown = r.files.sizes.grown
		case <-ctx.Done():
			return
		}
		if !r.snapshotDue(slack) {
			continue
		}
		if slack = rand.Float64(); !r.takeSnapshot() && !r.takeSnapshotFromReserve() {
			grown = nil // not again at once
		}
	}
}

// snapshotDue tells whether enough has been applied since the last snapshot. Slack, from 0 to 1, has the nodes take theirs at
// different times: they all have the same log.
func (r *Raft) snapshotDue(slack float64) bool {
	last, applied := uint64(r.files.snapshots.last().index), r.AppliedIndex()
	if applied <= last {
		return false
	}
	most := r.snapshotBytes()
	return applied-last >= r.snapshotEntries() || r.files.sizes.between(ids.Index(last), ids.Index(applied)) >= most+uint64(slack/4*float64(most))
}

// takeSnapshot leaves as much of the log as a follower may need that was away for a while. Why it fails raft itself tells.
func (r *Raft) takeSnapshot() (taken bool) {
	config := r.ReloadableConfig()
	config.TrailingLogs = r.trailingEntries()
	if err := r.ReloadConfig(config); err != nil {
		r.cfg.Logger.Warn("it cannot be changed how much is left of the log", "entries", config.TrailingLogs, "error", err)
	}
	return r.Snapshot().Error() == nil
}

// takeSnapshotFromReserve takes one with the space that the reserve had: the log that it ends has as much, or more.
func (r *Raft) takeSnapshotFromReserve() (taken bool) {
	return r.files.space.short.Load() && r.files.space.release() && r.takeSnapshot()
}

// snapshotEntries is after how many entries a snapshot is taken, and how many are kept behind it. It is a small number times a
// power of two, so that it seldom changes.
func (r *Raft) snapshotEntries() uint64 {
	entries := cmp.Or(r.cfg.SnapshotEntries, defaultSnapshotEntries)
	if r.files.space.short.Load() {
		entries = min(entries, shortSnapshotEntries)
	}
	inodes := 0
	r.FSM.View(func(ns *namespace.Namespace) { inodes = ns.Inodes() })
	for entries < uint64(inodes/inodesPerEntry) {
		entries *= 2
	}
	return entries
}

// snapshotBytes is after how many bytes of the log a snapshot is taken: it writes about as much as is used.
func (r *Raft) snapshotBytes() (bytes uint64) {
	r.FSM.View(func(ns *namespace.Namespace) { bytes = ns.Usage().GetBytes() })
	return max(bytes, cmp.Or(r.cfg.snapshotBytes, r.files.space.logShare()))
}

// trailingEntries is how many entries are left behind a snapshot: those of the newest that have no more than the least bytes
// between two snapshots.
func (r *Raft) trailingEntries() uint64 {
	entries, most := r.snapshotEntries(), cmp.Or(r.cfg.snapshotBytes, r.files.space.logShare())
	if r.files.sizes.between(0, math.MaxUint64-1) > most {
		entries = min(entries, r.files.sizes.newest(most))
	}
	return entries
}

// logShare is after how many bytes of the log a snapshot is taken at the earliest: less on a small disk, which has to hold
// them twice, and three states, and less while it is short of space.
func (r *diskReserve) logShare() uint64 {
	if r.short.Load() {
		return shortSnapshotBytes
	}
	var fs unix.Statfs_t
	if unix.Statfs(r.dir, &fs) != nil {
		return defaultSnapshotBytes
	}
	return min(defaultSnapshotBytes, max(shortSnapshotBytes, fs.Blocks*uint64(fs.Bsize)/16))
}
