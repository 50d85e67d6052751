package consensus

// LogSize returns the number of entries in the log, and their approximate size on disk.
func (r *Raft) LogSize() (entries int, bytes uint64) { return r.files.sizes.all() }

// NewestSnapshot describes the newest snapshot; nil if there is none.
func (r *Raft) NewestSnapshot() *SnapshotFigures { return r.files.snapshots.figure.Load() }
