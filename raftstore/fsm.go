package raftstore

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/storepb"
)

var _ raft.FSM = (*FSM)(nil)

// FSM lets raft apply commands to a namespace that others read meanwhile.
type FSM struct {
	logger *slog.Logger

	mu       sync.RWMutex
	ns       *Namespace
	advanced chan struct{} // closed when the state moves on; nil while nobody waits
	unknown  sync.Once
}

// NewFSM starts with an empty namespace.
func NewFSM(logger *slog.Logger) *FSM {
	return &FSM{logger: logger, ns: NewNamespace()}
}

// Apply answers a *storepb.Result. A log entry that is damaged panics: this node's state would differ
// from the others' if it went on.
func (f *FSM) Apply(entry *raft.Log) any {
	cmd, err := DecodeCommand(entry.Data)
	if err != nil {
		f.logger.Error("log entry cannot be read; the data directory is damaged", "index", entry.Index, "error", err)
		panic(err)
	}
	f.mu.Lock()
	result := f.ns.Apply(entry.Index, cmd)
	f.wake()
	f.mu.Unlock()
	if result.GetCode() == storepb.Code_UNKNOWN_COMMAND {
		f.unknown.Do(func() {
			f.logger.Error("a newer version wrote a command that this one does not know; update this node",
				"index", entry.Index)
		})
	}
	return result
}

// Query answers from the state of this node, which may be behind the cluster's.
func (f *FSM) Query(query *storepb.Query) *storepb.Result {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ns.Query(query)
}

// View calls look with the namespace, which look must not change or keep.
func (f *FSM) View(look func(*Namespace)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	look(f.ns)
}

// State is a copy of the whole state, in constant time.
func (f *FSM) State() *Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ns.Snapshot()
}

// Snapshot is part of raft.FSM.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	return fsmSnapshot{f.State()}, nil
}

// Restore is part of raft.FSM. The state stays as it is when the snapshot is damaged.
func (f *FSM) Restore(from io.ReadCloser) error {
	defer func() { _ = from.Close() }()
	ns, err := Restore(from)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ns = ns
	f.wake()
	return nil
}

// WaitIndex returns once the command with the given index has been applied.
func (f *FSM) WaitIndex(ctx context.Context, index uint64) error {
	for {
		f.mu.Lock()
		reached := f.ns.index >= index
		if !reached && f.advanced == nil {
			f.advanced = make(chan struct{})
		}
		advanced := f.advanced
		f.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake tells those who wait for an index; the caller holds the lock.
func (f *FSM) wake() {
	if f.advanced != nil {
		close(f.advanced)
		f.advanced = nil
	}
}

type fsmSnapshot struct{ *Snapshot }

func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.Write(sink); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

func (fsmSnapshot) Release() {}
