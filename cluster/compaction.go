package cluster

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"lockfs/raftstore/namespace"
)

// takeSnapshots takes one whenever it is due, until this node is closed. Raft itself would count entries only, and an entry may
// have any size from some bytes to a quarter of a MiB.
func (n *Node) takeSnapshots() {
	ticker := time.NewTicker(snapshotInterval)
	defer ticker.Stop()
	grown, slack := n.storage.sizes.grown, rand.Float64()
	for {
		select {
		case <-grown:
		case <-ticker.C:
			grown = n.storage.sizes.grown
		case <-n.ctx.Done():
			return
		}
		if !n.snapshotDue(slack) {
			continue
		}
		if slack = rand.Float64(); !n.takeSnapshot() {
			grown = nil // not again at once
		}
	}
}

// snapshotDue tells whether enough has been applied since the last snapshot. Slack, from 0 to 1, has the nodes take theirs at
// different times: they all have the same log.
func (n *Node) snapshotDue(slack float64) bool {
	last, applied := n.storage.snapshots.newest.Load(), n.raft.AppliedIndex()
	if applied <= last {
		return false
	}
	most := n.snapshotBytes()
	return applied-last >= n.snapshotEntries() || n.storage.sizes.between(last, applied) >= most+uint64(slack/4*float64(most))
}

// takeSnapshot leaves as much of the log as a follower may need that was away for a while. Why it fails raft itself tells.
func (n *Node) takeSnapshot() (taken bool) {
	config := n.raft.ReloadableConfig()
	config.TrailingLogs = n.trailingEntries()
	if err := n.raft.ReloadConfig(config); err != nil {
		n.logger.Warn("it cannot be changed how much is left of the log", "entries", config.TrailingLogs, "error", err)
	}
	return n.raft.Snapshot().Error() == nil
}

// snapshotEntries is after how many entries a snapshot is taken, and how many are kept behind it. It is a small number times a
// power of two, so that it seldom changes.
func (n *Node) snapshotEntries() uint64 {
	entries := cmp.Or(n.cfg.SnapshotEntries, defaultSnapshotEntries)
	inodes := 0
	n.fsm.View(func(ns *namespace.Namespace) { inodes = ns.Inodes() })
	for entries < uint64(inodes/inodesPerEntry) {
		entries *= 2
	}
	return entries
}

// snapshotBytes is after how many bytes of the log a snapshot is taken: it writes about as much as is used.
func (n *Node) snapshotBytes() (bytes uint64) {
	n.fsm.View(func(ns *namespace.Namespace) { bytes = ns.Usage().GetBytes() })
	return max(bytes, cmp.Or(n.cfg.snapshotBytes, defaultSnapshotBytes))
}

// trailingEntries is how many entries are left behind a snapshot: those of the newest that have no more than the least bytes
// between two snapshots.
func (n *Node) trailingEntries() uint64 {
	entries, most := n.snapshotEntries(), cmp.Or(n.cfg.snapshotBytes, defaultSnapshotBytes)
	if n.storage.sizes.between(0, math.MaxUint64-1) > most {
		entries = min(entries, n.storage.sizes.newest(most))
	}
	return entries
}
