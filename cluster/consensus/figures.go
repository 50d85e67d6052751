package consensus

// LogSize is how many entries the log has, and about how many bytes they need on disk.
func (r *Raft) LogSize() (entries int, bytes uint64) { return r.files.sizes.all() }

// NewestSnapshot describes the newest snapshot; nil if there is none.
func (r *Raft) NewestSnapshot() *SnapshotFigures { return r.files.snapshots.figure.Load() }
