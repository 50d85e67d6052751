package consensus

import (
	"errors"

	"github.com/hashicorp/raft"

	"lockfs/raftstore"
)

// Raft is a running raft node on its log, votes, snapshots and transport.
type Raft struct {
	*raft.Raft
	FSM       *raftstore.FSM
	Transport raft.Transport

	cfg   Config
	id    raft.ServerID
	files *storage
}

// Close stops it. Everything acknowledged is on disk.
func (r *Raft) Close() error {
	var errs []error
	r.files.space.close()
	if r.Raft != nil {
		errs = append(errs, r.Shutdown().Error())
	}
	if closer, ok := r.Transport.(raft.WithClose); ok {
		errs = append(errs, closer.Close())
	}
	return errors.Join(append(errs, r.files.close())...)
}

// LogSize returns the number of entries in the log, and their approximate size on disk.
func (r *Raft) LogSize() (entries int, bytes uint64) { return r.files.sizes.all() }

// NewestSnapshot describes the newest snapshot; nil if there is none.
func (r *Raft) NewestSnapshot() *SnapshotFigures { return r.files.snapshots.figure.Load() }
