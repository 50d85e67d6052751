package consensus

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus/wal"
	"lockfs/raftstore/namespace"
)

// storage has all of raft's files.
type storage struct {
	disk      *disk
	space     *diskReserve
	log       *wal.Log
	logs      *parallelLog
	sizes     *meteredLog
	votes     *voteStore
	snapshots *snapshotStore
	snapshot  position // last entry of the newest one at the start; index 0: none
}

// openStorage checks all files before raft relies on them. It returns the state of the newest snapshot,
// or an empty one. The disk is not watched yet.
func openStorage(dir *Directory, cfg *Config) (*storage, *namespace.Namespace, error) {
	snapshots, err := openSnapshots(dir.Path, cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	state, newest, err := restoreSnapshot(dir.Path, snapshots)
	if err != nil {
		return nil, nil, err
	}
	if state.Version() > dir.versions.Newest { // older data can be read, and the log continues from there
		err := state.CheckVersion(dir.versions)
		return nil, nil, fmt.Errorf("data directory %s, which stays as it is: %w", dir.Path, err)
	}
	snapshots.noteNewest(newest)
	if err := snapshots.describeNewest(); err != nil {
		return nil, nil, err
	}
	votes, err := openVotes(filepath.Join(dir.Path, votesFile), dir.Joined)
	if err != nil {
		return nil, nil, err
	}
	space := newDiskReserve(dir.Path, cfg.MinFree, cfg.Logger)
	log, sizes, err := openLog(filepath.Join(dir.Path, logDir), newest, dir.Joined, cfg.Logger, space)
	if err != nil {
		return nil, nil, errors.Join(err, votes.Close())
	}
	var entries raft.LogStore = log
	if cfg.Entries != nil {
		entries = cfg.Entries(log)
	}
	disk := newDisk(dir.Path, cfg.Fail, cfg.StepDown, space)
	disk.writing, disk.wrote = cfg.Writing, cfg.Wrote
	sized := newMeteredLog(&watchedLog{entries, disk}, sizes)
	logs := newParallelLog(sized)
	logs.onStore = cfg.OnStore
	votes.log, votes.disk = logs, disk
	return &storage{disk: disk, space: space, log: log, logs: logs, sizes: sized, votes: votes, snapshots: snapshots, snapshot: newest}, state, nil
}

func (s *storage) close() error {
	s.logs.close()
	s.disk.close()
	return errors.Join(s.log.Close(), s.votes.Close())
}
