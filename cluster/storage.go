package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/raft"
	bbolterrors "go.etcd.io/bbolt/errors"

	"lockfs/cluster/waldir"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/namespace"
)

// What a data directory holds besides identityFile.
const (
	lockFile    = "lock"      // locked (flock) while a node runs
	votesFile   = "votes.db"  // raft-boltdb: term and vote
	logDir      = "log"       // raft-wal: the log
	snapshotDir = "snapshots" // raft's file snapshot store
)

const keptSnapshots = 2

// DamagedError says that a file of the data directory is not what was once written to it.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged (%v). This node cannot be trusted with its vote any more: "+
		"take it out with `lockfs member remove`, move the data directory away, and start it again with --join "+
		"and an empty one; the other members bring it up to date. If it is the only member, restore the directory from a backup",
		e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// damagedOr answers a DamagedError unless an error is the disk's, or is about another version: neither says that anything is
// damaged, so neither may lead to anything being moved away.
func damagedOr(path string, err error) error {
	failed := new(fs.PathError)
	switch {
	case errors.Is(err, codec.ErrNewer), errors.Is(err, codec.ErrOlder):
		return fmt.Errorf("%s: %w", path, err)
	case errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("%s: %w", path, codec.ErrNewer)
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process (%w)", path, err)
	case errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return &DamagedError{Path: path, Err: err}
}

// storage is the data directory of a running node.
type storage struct {
	disk      *disk
	log       *waldir.Log
	logs      *earlyLog
	sizes     *sizedLog
	votes     *voteStore
	snapshots *snapshotStore
	state     *namespace.Namespace // of the newest snapshot, or what there is without one
	snapshot  uint64               // index of that snapshot; 0: there is none
}

// lockDataDir keeps a second process away from a data directory.
func lockDataDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s is in use by another process (%w)", dir, err)
	}
	return file, nil
}

// openStorage checks everything that it opens before raft may rely on it. The disk is not watched yet.
// used says that the directory has been used before, so that its log cannot be missing.
func openStorage(cfg *Config, used bool, disk *disk, logger *slog.Logger) (*storage, error) {
	dir := cfg.DataDir
	snapshots, err := openSnapshots(dir, logger)
	if err != nil {
		return nil, err
	}
	state, newest, err := restoreSnapshot(dir, snapshots)
	if err != nil {
		return nil, err
	}
	snapshots.newest.Store(newest)
	votes, err := openVotes(filepath.Join(dir, votesFile), used)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, logDir)
	log, sizes, err := openLog(path, newest, used, logger)
	if err != nil {
		return nil, errors.Join(err, votes.Close())
	}
	var entries raft.LogStore = log
	if cfg.entries != nil {
		entries = cfg.entries(log)
	}
	sized := newSizedLog(&guardedLog{entries, disk}, sizes)
	logs := newEarlyLog(sized)
	votes.log, votes.disk = logs, disk
	return &storage{
		disk: disk, log: log, logs: logs, sizes: sized, votes: votes, snapshots: snapshots, state: state, snapshot: newest,
	}, nil
}

func openLog(path string, snapshot uint64, used bool, logger *slog.Logger) (*waldir.Log, entrySizes, error) {
	var sizes entrySizes
	log, err := waldir.Open(path, used, raftLogger(logger, slog.LevelDebug))
	if damage := new(waldir.Damage); errors.As(err, &damage) {
		return nil, sizes, &DamagedError{Path: damage.Path, Err: damage.Err}
	}
	if err != nil {
		return nil, sizes, err
	}
	if sizes, err = checkEntries(log, snapshot); err != nil {
		return nil, sizes, errors.Join(damagedOr(path, err), log.Close())
	}
	if err := dropBehind(log, snapshot); err != nil {
		return nil, sizes, errors.Join(fmt.Errorf("%s: %w", path, err), log.Close())
	}
	return log, sizes, nil
}

// dropBehind drops a log that ends before the snapshot, for it has no gaps, and raft goes on behind the snapshot. The process
// ended between a leader's snapshot and the end of the log before it.
func dropBehind(log raft.LogStore, snapshot uint64) error {
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil || last == 0 || last >= snapshot {
		return err
	}
	return log.DeleteRange(first, last)
}

func (s *storage) close() error {
	s.logs.close()
	s.disk.close()
	return errors.Join(s.log.Close(), s.votes.Close())
}

// restoreSnapshot answers the state of the newest snapshot, which is the one that raft starts from, and its index: with an
// older one and a log that was cut behind the newest, entries would be missing.
func restoreSnapshot(dir string, store *snapshotStore) (state *namespace.Namespace, index uint64, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotDir))
	if err != nil {
		return nil, 0, fmt.Errorf("list snapshots: %w", err)
	}
	metas, err := store.List()
	if err != nil {
		return nil, 0, fmt.Errorf("list snapshots: %w", err)
	}
	listed := make(map[string]bool, len(metas))
	for _, meta := range metas {
		listed[meta.ID] = true
	}
	for i := len(entries) - 1; i >= 0 && len(metas) < keptSnapshots; i-- {
		name := entries[i].Name()
		if !listed[name] {
			return nil, 0, whyNotListed(filepath.Join(dir, snapshotDir, name, "meta.json"))
		}
	}
	if len(metas) == 0 {
		return namespace.New(), 0, nil
	}
	path := filepath.Join(dir, snapshotDir, metas[0].ID, stateFile)
	_, reader, err := store.Open(metas[0].ID)
	if err != nil {
		return nil, 0, damagedOr(path, err)
	}
	defer func() { _ = reader.Close() }()
	if state, err = namespace.Restore(reader); err != nil {
		return nil, 0, damagedOr(path, err)
	}
	return state, metas[0].Index, nil
}

// whyNotListed tells what is wrong with the description of a snapshot that raft passes over.
func whyNotListed(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return damagedOr(path, err)
	}
	var meta raft.SnapshotMeta
	if err := json.Unmarshal(content, &meta); err != nil {
		return damagedOr(path, err)
	}
	if meta.Version > raft.SnapshotVersionMax {
		return damagedOr(path, fmt.Errorf("version %d: %w", meta.Version, codec.ErrNewer))
	}
	return damagedOr(path, errors.New("it cannot be read"))
}

// checkEntries reads every entry of the log, which must go on from the snapshot without a gap, and answers how large they are.
func checkEntries(log raft.LogStore, snapshot uint64) (sizes entrySizes, err error) {
	first, err := log.FirstIndex()
	if err != nil {
		return sizes, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return sizes, err
	}
	if first > snapshot+1 {
		return sizes, fmt.Errorf("entries %d to %d are missing", snapshot+1, first-1)
	}
	for index := first; index <= last && last > 0; index++ {
		var entry raft.Log
		if err := log.GetLog(index, &entry); err != nil {
			return sizes, fmt.Errorf("entry %d: %w", index, err)
		}
		if entry.Index != index {
			return sizes, fmt.Errorf("entry %d says that it is %d", index, entry.Index)
		}
		sizes.add(&entry)
		if entry.Type != raft.LogCommand {
			continue
		}
		if err := codec.CheckCommand(entry.Data); err != nil {
			return sizes, fmt.Errorf("entry %d: %w", index, err)
		}
	}
	return sizes, nil
}

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

// cachedEntries is how many of the newest entries are kept in memory, too: they are sent to followers right after.
const cachedEntries = 64

func logCache(logs raft.LogStore) raft.LogStore {
	cache, err := raft.NewLogCache(cachedEntries, logs)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}
