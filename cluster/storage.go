package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"lockfs/raftstore"
)

// What a data directory holds besides identityFile.
const (
	lockFile    = "lock"      // locked (flock) while a node runs
	logFile     = "log.db"    // raft-boltdb: log, term and vote
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

// storage is the data directory of a running node.
type storage struct {
	bolt      *raftboltdb.BoltStore
	logs      *guardedLog
	votes     *voteStore
	snapshots *raft.FileSnapshotStore
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

// openStorage checks everything that it opens before raft may rely on it. fatal is called when the
// disk fails or stalls later on.
// used says that the directory has been used before, so that its log cannot be missing.
func openStorage(dir string, used bool, logger *slog.Logger, fatal func(error)) (*storage, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, raftLogger(logger, slog.LevelDebug))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	newest, err := checkSnapshots(dir, snapshots)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, logFile)
	if err := checkLog(path, newest, used); err != nil {
		return nil, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{Timeout: time.Second}, MsgpackUseNewTimeFormat: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	logs := &guardedLog{LogStore: bolt, path: path, fatal: fatal}
	go logs.watch()
	return &storage{bolt: bolt, logs: logs, votes: &voteStore{StableStore: bolt}, snapshots: snapshots}, nil
}

func (s *storage) close() error {
	s.logs.stopped.Store(true)
	return s.bolt.Close()
}

// checkSnapshots reads the newest snapshot, which is the one that raft starts from: with an older one
// and a log that was cut behind the newest, entries would be missing. It answers its index.
func checkSnapshots(dir string, store *raft.FileSnapshotStore) (index uint64, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotDir))
	if err != nil {
		return 0, fmt.Errorf("list snapshots: %w", err)
	}
	metas, err := store.List()
	if err != nil {
		return 0, fmt.Errorf("list snapshots: %w", err)
	}
	listed := make(map[string]bool, len(metas))
	for _, meta := range metas {
		listed[meta.ID] = true
	}
	for i := len(entries) - 1; i >= 0 && len(metas) < keptSnapshots; i-- {
		name := entries[i].Name()
		if filepath.Ext(name) != ".tmp" && !listed[name] {
			return 0, &DamagedError{Path: filepath.Join(dir, snapshotDir, name, "meta.json"), Err: errors.New("it cannot be read")}
		}
	}
	if len(metas) == 0 {
		return 0, nil
	}
	path := filepath.Join(dir, snapshotDir, metas[0].ID, "state.bin")
	_, reader, err := store.Open(metas[0].ID)
	if err != nil {
		return 0, &DamagedError{Path: path, Err: err}
	}
	defer func() { _ = reader.Close() }()
	if _, err := raftstore.Restore(reader); err != nil {
		return 0, &DamagedError{Path: path, Err: err}
	}
	return metas[0].Index, nil
}

// checkLog reads every entry of the log, which must go on from the snapshot without a gap. Damage in a
// memory-mapped file can show as a fault or a panic, and does so here rather than in raft.
func checkLog(path string, snapshot uint64, used bool) (err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && snapshot == 0 && !used:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return &DamagedError{Path: path, Err: errors.New("it is missing")}
	case err != nil:
		return err
	case info.Size() == 0:
		return &DamagedError{Path: path, Err: errors.New("it is empty")}
	}
	faults := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{Path: path, Err: fmt.Errorf("%v", p)}
		}
	}()
	if err := checkPages(path, info.Size()); err != nil {
		return &DamagedError{Path: path, Err: err}
	}
	store, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{Timeout: time.Second, ReadOnly: true},
	})
	if err != nil {
		return &DamagedError{Path: path, Err: err}
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := checkEntries(store, snapshot); err != nil {
		return &DamagedError{Path: path, Err: err}
	}
	return nil
}

// checkPages looks at the structure of the file, whatever is in it.
func checkPages(path string, size int64) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it has %d bytes of %d", size, tx.Size())
		}
		var first error
		for err := range tx.Check() {
			if first == nil { // bbolt reports its own panics as errors
				first = errors.New(strings.TrimPrefix(err.Error(), "panic: "))
			}
		}
		return first
	})
}

func checkEntries(store *raftboltdb.BoltStore, snapshot uint64) error {
	first, err := store.FirstIndex()
	if err != nil {
		return err
	}
	last, err := store.LastIndex()
	if err != nil {
		return err
	}
	if first > snapshot+1 {
		return fmt.Errorf("entries %d to %d are missing", snapshot+1, first-1)
	}
	for index := first; index <= last && last > 0; index++ {
		var entry raft.Log
		if err := store.GetLog(index, &entry); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		if entry.Index != index {
			return fmt.Errorf("entry %d says that it is %d", index, entry.Index)
		}
		if entry.Type != raft.LogCommand {
			continue
		}
		if err := raftstore.CheckCommand(entry.Data); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
	}
	_, err = (&voteStore{StableStore: store}).load()
	return err
}

// stallLimit is how long one write to the log may take. A leader whose disk hangs would hold its
// cluster up for as long as it keeps sending heartbeats.
const stallLimit = 20 * time.Second

// guardedLog ends the process when the log's disk fails or stalls: a voter exits rather than lead.
type guardedLog struct {
	raft.LogStore
	path    string
	fatal   func(error)
	writing atomic.Int64 // when the write under way began, Unix nanoseconds; 0: none
	stopped atomic.Bool
}

var _ raft.LogStore = (*guardedLog)(nil)

func (g *guardedLog) StoreLog(entry *raft.Log) error { return g.StoreLogs([]*raft.Log{entry}) }

func (g *guardedLog) StoreLogs(entries []*raft.Log) error {
	g.writing.Store(time.Now().UnixNano())
	err := g.LogStore.StoreLogs(entries)
	g.writing.Store(0)
	if err != nil && !g.stopped.Load() {
		g.fatal(fmt.Errorf("write %s: %w", g.path, err))
	}
	return err
}

func (g *guardedLog) watch() {
	for range time.Tick(time.Second) {
		if g.stopped.Load() {
			return
		}
		began := g.writing.Load()
		if began != 0 && time.Since(time.Unix(0, began)) > stallLimit {
			g.fatal(fmt.Errorf("write %s: the disk has not answered for %v", g.path, stallLimit))
			return
		}
	}
}

// voteStore keeps a vote's term and candidate in one record. Raft writes them one after the other, and
// a crash between the two would leave a vote of one term with the candidate of another
// (hashicorp/raft#661).
type voteStore struct {
	raft.StableStore
	term uint64 // of the vote that raft is about to complete; raft writes from one goroutine
}

var _ raft.StableStore = (*voteStore)(nil)

// Keys of raft's that are kept together, and the record that holds them.
var (
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
	keyVote          = []byte("Vote")
)

type vote struct {
	term      uint64
	candidate []byte
}

func (v *voteStore) SetUint64(key []byte, value uint64) error {
	if string(key) != keyVoteTerm {
		return v.StableStore.SetUint64(key, value)
	}
	v.term = value
	return nil
}

func (v *voteStore) Set(key, value []byte) error {
	if string(key) != keyVoteCandidate {
		return v.StableStore.Set(key, value)
	}
	return v.StableStore.Set(keyVote, append(binary.BigEndian.AppendUint64(nil, v.term), value...))
}

func (v *voteStore) GetUint64(key []byte) (uint64, error) {
	if string(key) != keyVoteTerm {
		return v.StableStore.GetUint64(key)
	}
	stored, err := v.load()
	return stored.term, err
}

func (v *voteStore) Get(key []byte) ([]byte, error) {
	if string(key) != keyVoteCandidate {
		return v.StableStore.Get(key)
	}
	stored, err := v.load()
	return stored.candidate, err
}

// load answers no vote where there is none yet.
func (v *voteStore) load() (vote, error) {
	record, err := v.StableStore.Get(keyVote)
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound):
		return vote{}, nil
	case err != nil:
		return vote{}, err
	case len(record) < 8:
		return vote{}, fmt.Errorf("vote of %d bytes", len(record))
	}
	return vote{binary.BigEndian.Uint64(record), record[8:]}, nil
}
