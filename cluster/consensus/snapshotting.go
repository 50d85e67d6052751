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
	snapshotInterval       = 2 * time.Second // between checks of the number of entries
	// Limits while the disk is short of space. They apply to a small state only: the snapshots of a large
	// one take more space than the log, and would never end.
	shortSnapshotEntries = 1024
	shortSnapshotBytes   = 4 << 20
	// A snapshot writes the whole state: its cost is spread over an entry for so many inodes.
	inodesPerEntry = 8
)

// TakeSnapshots takes due snapshots until ctx ends. Raft itself counts only entries, whose sizes differ
// from some bytes to a quarter of a MiB.
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

// snapshotDue reports whether enough was applied since the last snapshot. slack, from 0 to 1, spreads the
// snapshots of nodes, which all have the same log.
func (r *Raft) snapshotDue(slack float64) bool {
	last, applied := uint64(r.files.snapshots.last().index), r.AppliedIndex()
	if applied <= last {
		return false
	}
	most := r.snapshotBytes()
	return applied-last >= r.snapshotEntries() || r.files.sizes.between(ids.Index(last), ids.Index(applied)) >= most+uint64(slack/4*float64(most))
}

// takeSnapshot keeps a part of the log for followers that were away for a while. Raft logs its errors.
func (r *Raft) takeSnapshot() (taken bool) {
	config := r.ReloadableConfig()
	config.TrailingLogs = r.trailingEntries()
	if err := r.ReloadConfig(config); err != nil {
		r.cfg.Logger.Warn("it cannot be changed how much is left of the log", "entries", config.TrailingLogs, "error", err)
	}
	return r.Snapshot().Error() == nil
}

// takeSnapshotFromReserve uses the space of the reserve: the truncation frees as much or more.
func (r *Raft) takeSnapshotFromReserve() (taken bool) {
	return r.files.space.short.Load() && r.files.space.release() && r.takeSnapshot()
}

// snapshotEntries returns the number of entries between snapshots, and kept after one. It is a small
// number times a power of two, so it seldom changes.
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

// snapshotBytes returns the size of the log between snapshots, about the size of the state.
func (r *Raft) snapshotBytes() (bytes uint64) {
	r.FSM.View(func(ns *namespace.Namespace) { bytes = ns.Usage().GetBytes() })
	return max(bytes, cmp.Or(r.cfg.snapshotBytes, r.files.space.logShare()))
}

// trailingEntries returns how many entries stay after a snapshot: the newest ones, up to the least size
// between two snapshots.
func (r *Raft) trailingEntries() uint64 {
	entries, most := r.snapshotEntries(), cmp.Or(r.cfg.snapshotBytes, r.files.space.logShare())
	if r.files.sizes.between(0, math.MaxUint64-1) > most {
		entries = min(entries, r.files.sizes.newest(most))
	}
	return entries
}

// logShare returns the least size of the log between snapshots. It is less on a small disk, which has to
// hold the log twice and three states, and while space is short.
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
