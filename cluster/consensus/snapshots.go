package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"lockfs/cluster/atomicfile"
	"lockfs/raftstore/ids"
)

// snapshotPiece is how many bytes of a snapshot are written without a sync. The log shares the disk, and
// its writes wait for earlier ones.
const snapshotPiece = 8 << 20

// keptSnapshots is how many of the newest are kept.
const keptSnapshots = 2

// Names in raft's store.
const (
	unfinished = ".tmp" // suffix of an unfinished snapshot
	stateFile  = "state.bin"
)

// snapshotStore wraps raft's, which would sync a snapshot only at its end.
type snapshotStore struct {
	*raft.FileSnapshotStore
	dir    string
	newest atomic.Pointer[position] // last entry of the newest one; nil: none
	figure atomic.Pointer[SnapshotFigures]
}

// openSnapshots removes unfinished snapshots of an earlier process.
func openSnapshots(dir string, logger *slog.Logger) (*snapshotStore, error) {
	snapshots := filepath.Join(dir, snapshotDir)
	entries, err := os.ReadDir(snapshots)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), unfinished) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(snapshots, entry.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("remove unfinished snapshots: %w", err)
	}
	if len(entries) > 0 {
		if err := atomicfile.SyncDir(snapshots); err != nil { // the process may have been killed before the sync
			return nil, fmt.Errorf("open snapshots: %w", err)
		}
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, raftLogger(logger, slog.LevelDebug))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapshotStore{FileSnapshotStore: store, dir: snapshots}, nil
}

// Create is part of raft.SnapshotStore.
func (s *snapshotStore) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64,
	trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(s.dir, sink.ID()+unfinished, stateFile))
	if err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return &snapshotSink{
		SnapshotSink: sink, sync: func() error { return unix.Fdatasync(int(file.Fd())) }, close: file.Close,
		done: func() {
			s.noteNewest(position{ids.Index(index), ids.Term(term)})
			s.describe(index, sink.ID())
		},
	}, nil
}

// noteNewest records a snapshot, unless a newer one of the leader has arrived.
func (s *snapshotStore) noteNewest(taken position) {
	for {
		newest := s.newest.Load()
		if newest != nil && newest.index >= taken.index || s.newest.CompareAndSwap(newest, &taken) {
			return
		}
	}
}

// last returns the last entry in the newest snapshot; index 0: none.
func (s *snapshotStore) last() position {
	if newest := s.newest.Load(); newest != nil {
		return *newest
	}
	return position{}
}

// describeNewest reads the snapshot of an earlier process.
func (s *snapshotStore) describeNewest() error {
	kept, err := s.List()
	if err != nil || len(kept) == 0 {
		return err
	}
	s.describe(kept[0].Index, kept[0].ID)
	return nil
}

// describe caches the description of the newest snapshot, so that readers do not wait for the disk. A
// deleted snapshot has a newer successor, described next.
func (s *snapshotStore) describe(index uint64, id string) {
	if figures := figuresOf(index, filepath.Join(s.dir, id, stateFile)); figures != nil {
		s.figure.Store(figures)
	}
}

type snapshotSink struct {
	raft.SnapshotSink
	sync    func() error
	close   func() error
	done    func() // called when it is complete
	waiting int    // bytes
}

// Write is part of raft.SnapshotSink.
func (s *snapshotSink) Write(b []byte) (int, error) {
	n, err := s.SnapshotSink.Write(b)
	if s.waiting += n; err == nil && s.waiting >= snapshotPiece {
		s.waiting = 0
		err = s.sync()
	}
	return n, err
}

// Close is part of raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	_ = s.close()
	err := s.SnapshotSink.Close()
	if err == nil {
		s.done()
	}
	return err
}

// Cancel is part of raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	_ = s.close()
	return s.SnapshotSink.Cancel()
}

// SnapshotFigures describe a snapshot.
type SnapshotFigures struct {
	Index uint64
	Bytes int64
	Taken time.Time // time of the last write
}

// figuresOf describes the snapshot with a state file; nil: it was deleted meanwhile.
func figuresOf(index uint64, file string) *SnapshotFigures {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	figures := &SnapshotFigures{Index: index}
	if err == nil {
		figures.Bytes, figures.Taken = info.Size(), info.ModTime()
	}
	return figures
}
