package raftstore

import (
	"context"
	"io"
	"log/slog"
	"math"
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
	awaited  map[Request]chan struct{}
	removals *removals
	due      int64         // what NextDue was
	sooner   chan struct{} // has something when it has become sooner
	unknown  sync.Once
}

// NewFSM goes on from a state.
func NewFSM(ns *Namespace, logger *slog.Logger) *FSM {
	f := &FSM{
		logger: logger, ns: ns, awaited: make(map[Request]chan struct{}), removals: newRemovals(),
		due: math.MaxInt64, sooner: make(chan struct{}, 1),
	}
	f.wake()
	return f
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
	f.removals.add(f.ns.removed)
	f.wake()
	for _, request := range f.ns.Ended() {
		f.tell(request)
	}
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
	return f.query(query)
}

// QuerySince answers as soon as this node's state will do for a query; nil: it does not yet, or the newest is wanted.
func (f *FSM) QuerySince(query *storepb.Query) *storepb.Result {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if query.GetSince() == 0 || query.GetSince() > f.ns.index {
		return nil
	}
	return f.query(query)
}

func (f *FSM) query(query *storepb.Query) *storepb.Result {
	result := f.ns.Query(query)
	result.Index = f.ns.index
	return result
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
	for request := range f.awaited {
		f.tell(request)
	}
	return nil
}

// AwaitLock answers what has become of a request once it is no longer waiting, or when ctx ends.
func (f *FSM) AwaitLock(ctx context.Context, query *storepb.AwaitLock) *storepb.Result {
	request := Request{query.GetSession(), query.GetSeq()}
	for {
		f.mu.Lock()
		result := f.ns.awaitLock(query)
		if result.GetCode() != storepb.Code_WAITING {
			f.mu.Unlock()
			return result
		}
		ended, found := f.awaited[request]
		if !found {
			ended = make(chan struct{})
			f.awaited[request] = ended
		}
		f.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			f.mu.Lock()
			if f.awaited[request] == ended {
				f.tell(request) // others who await it look again
			}
			f.mu.Unlock()
			return result
		}
	}
}

// tell wakes those who await a request; the caller holds the lock.
func (f *FSM) tell(request Request) {
	if ended, found := f.awaited[request]; found {
		close(ended)
		delete(f.awaited, request)
	}
}

// WaitFor returns once a condition holds, which is looked at after every command, or the reason why ctx ended.
func (f *FSM) WaitFor(ctx context.Context, holds func(*Namespace) bool) error {
	for {
		f.mu.Lock()
		done := holds(f.ns)
		if !done && f.advanced == nil {
			f.advanced = make(chan struct{})
		}
		advanced := f.advanced
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake tells those who wait for an index, or for time to pass; the caller holds the lock.
func (f *FSM) wake() {
	if f.advanced != nil {
		close(f.advanced)
		f.advanced = nil
	}
	due := f.ns.NextDue()
	if due < f.due {
		select {
		case f.sooner <- struct{}{}:
		default:
		}
	}
	f.due = due
}

// Sooner delivers something when NextDue has become sooner since it was received from last. It has one receiver.
func (f *FSM) Sooner() <-chan struct{} { return f.sooner }

type fsmSnapshot struct{ *Snapshot }

func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.Write(sink); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

func (fsmSnapshot) Release() {}
