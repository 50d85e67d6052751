package consensus

import "github.com/hashicorp/raft"

// watchedLog ends the process when the log's disk fails or hangs.
type watchedLog struct {
	raft.LogStore
	disk *disk
}

var _ raft.MonotonicLogStore = (*watchedLog)(nil)

// IsMonotonic says that the log has no gaps, so raft empties it when a snapshot replaces it.
func (l *watchedLog) IsMonotonic() bool { return true }

// StoreLog is part of raft.LogStore.
func (l *watchedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore.
func (l *watchedLog) StoreLogs(entries []*raft.Log) error {
	return l.disk.do(func() error { return l.LogStore.StoreLogs(entries) })
}

// DeleteRange is part of raft.LogStore. After an error raft would continue with entries that it believes deleted.
func (l *watchedLog) DeleteRange(first, last uint64) error {
	return l.disk.do(func() error { return l.LogStore.DeleteRange(first, last) })
}
