package consensus

import "github.com/hashicorp/raft"

// guardedLog ends the process when the log's disk fails or hangs.
type guardedLog struct {
	raft.LogStore
	disk *disk
}

var _ raft.MonotonicLogStore = (*guardedLog)(nil)

// IsMonotonic says that the log has no gaps, so raft empties it when a snapshot takes its place.
func (g *guardedLog) IsMonotonic() bool { return true }

// StoreLog is part of raft.LogStore.
func (g *guardedLog) StoreLog(entry *raft.Log) error { return g.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore.
func (g *guardedLog) StoreLogs(entries []*raft.Log) error {
	return g.disk.do(func() error { return g.LogStore.StoreLogs(entries) })
}

// DeleteRange is part of raft.LogStore. Raft goes on when it fails, with entries that it believes gone.
func (g *guardedLog) DeleteRange(first, last uint64) error {
	return g.disk.do(func() error { return g.LogStore.DeleteRange(first, last) })
}
