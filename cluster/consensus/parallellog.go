package consensus

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// Limits of entries in memory only. Beyond them a leader waits for its disk.
const (
	maxUnwritten      = 256
	maxUnwrittenBytes = 8 << 20
)

// parallelLog lets followers write an entry in parallel to the leader (Ongaro, Consensus: Bridging Theory
// and Practice, section 10.2.1). Raft replicates an entry after its log has stored it, and then counts
// the leader's copy. This log returns at once for a leader's commands, and writes them in the background.
// So raft may commit an entry with too few copies on disk. Until the entry is on this disk, nothing acts
// on that:
//
//   - The state machine waits (parallelFSM), and with it all readers and callers.
//   - Followers do not learn of the commit (transport).
//   - Nothing is stored in a later term: neither the term itself nor a vote (voteStore). So a leader
//     elected with or without this node's vote has the entry, unless this node lost it in a crash before
//     it was on disk. Then nothing had acted on it, and it was never committed.
//
// Entries for raft itself, and those of another leader, are on disk when they are stored.
type parallelLog struct {
	raft.LogStore // the log on disk

	raft    atomic.Pointer[raft.Raft] // owner of the log; nil: entries are on disk when they are stored
	onStore func()                    // may be nil

	mu        sync.Mutex
	changed   *sync.Cond
	unwritten []*raft.Log // stored, but not on disk yet
	bytes     uint64      // of these
	failed    error       // error of the disk, permanent
	closing   bool
	closed    chan struct{}
}

var _ raft.MonotonicLogStore = (*parallelLog)(nil)

func newParallelLog(disk raft.LogStore) *parallelLog {
	l := &parallelLog{LogStore: disk, closed: make(chan struct{})}
	l.changed = sync.NewCond(&l.mu)
	go l.write()
	return l
}

// IsMonotonic is part of raft.MonotonicLogStore.
func (l *parallelLog) IsMonotonic() bool {
	disk, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && disk.IsMonotonic()
}

// StoreLog is part of raft.LogStore.
func (l *parallelLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore. Raft calls it on the goroutine that changes its state.
func (l *parallelLog) StoreLogs(entries []*raft.Log) error {
	if l.onStore != nil {
		l.onStore()
	}
	r := l.raft.Load()
	isCommand := func(entry *raft.Log) bool { return entry.Type == raft.LogCommand }
	if r == nil || r.State() != raft.Leader || !every(entries, isCommand) {
		if err := l.flush(); err != nil {
			return err
		}
		return l.LogStore.StoreLogs(entries)
	}
	return l.storeParallel(entries)
}

func (l *parallelLog) storeParallel(entries []*raft.Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (len(l.unwritten) >= maxUnwritten || l.bytes >= maxUnwrittenBytes) && l.failed == nil {
		l.changed.Wait()
	}
	if l.failed != nil {
		return l.failed
	}
	l.unwritten = append(l.unwritten, entries...)
	l.bytes += totalSize(entries)
	l.changed.Broadcast()
	return nil
}

func every(entries []*raft.Log, holds func(*raft.Log) bool) bool {
	return !slices.ContainsFunc(entries, func(entry *raft.Log) bool { return !holds(entry) })
}

// write writes entries to the disk until the log is closed.
func (l *parallelLog) write() {
	defer close(l.closed)
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.unwritten) == 0 || l.failed != nil {
			if l.closing {
				return
			}
			l.changed.Wait()
		}
		entries := slices.Clone(l.unwritten)
		l.mu.Unlock()
		err := l.LogStore.StoreLogs(entries)
		l.mu.Lock()
		if err != nil {
			l.failed = fmt.Errorf("entries %d and later are not on disk: %w", entries[0].Index, err)
		} else {
			l.unwritten = slices.Delete(l.unwritten, 0, len(entries))
			l.bytes -= totalSize(entries)
		}
		l.changed.Broadcast()
	}
}

// await waits until all entries up to an index are on disk.
func (l *parallelLog) await(index ids.Index) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.unwritten) > 0 && ids.Index(l.unwritten[0].Index) <= index {
		if l.failed != nil {
			return l.failed
		}
		l.changed.Wait()
	}
	return nil
}

// failure returns the disk's error; nil: none.
func (l *parallelLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// flush waits until all entries are on disk.
func (l *parallelLog) flush() error { return l.await(math.MaxUint64) }

// committed limits a commit index to the entries on this disk.
func (l *parallelLog) committed(index ids.Index) ids.Index {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unwritten) > 0 {
		return min(index, ids.Index(l.unwritten[0].Index-1))
	}
	return index
}

// GetLog is part of raft.LogStore.
func (l *parallelLog) GetLog(index uint64, to *raft.Log) error {
	l.mu.Lock()
	if len(l.unwritten) > 0 && index >= l.unwritten[0].Index && index-l.unwritten[0].Index < uint64(len(l.unwritten)) {
		*to = *l.unwritten[index-l.unwritten[0].Index]
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	return l.LogStore.GetLog(index, to)
}

// FirstIndex is part of raft.LogStore.
func (l *parallelLog) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, err := l.LogStore.FirstIndex()
	if err == nil && first == 0 && len(l.unwritten) > 0 {
		first = l.unwritten[0].Index
	}
	return first, err
}

// LastIndex is part of raft.LogStore.
func (l *parallelLog) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unwritten) > 0 {
		return l.unwritten[len(l.unwritten)-1].Index, nil
	}
	return l.LogStore.LastIndex()
}

// DeleteRange is part of raft.LogStore.
func (l *parallelLog) DeleteRange(first, last uint64) error {
	if err := l.await(ids.Index(last)); err != nil {
		return err
	}
	return l.LogStore.DeleteRange(first, last)
}

// close waits until all entries are on disk.
func (l *parallelLog) close() {
	l.mu.Lock()
	l.closing = true
	l.changed.Broadcast()
	l.mu.Unlock()
	<-l.closed
}

// parallelFSM applies entries on this node's disk.
type parallelFSM struct {
	raft.ConfigurationStore
	log *parallelLog
}

// Apply returns the result, or an error if the entry will not get to the disk: then this node applies
// nothing more, though raft continues to count.
func (f parallelFSM) Apply(entry *raft.Log) any {
	if err := f.log.await(ids.Index(entry.Index)); err != nil {
		return err
	}
	return f.ConfigurationStore.Apply(entry)
}

// StoreConfiguration is part of raft.ConfigurationStore.
func (f parallelFSM) StoreConfiguration(index uint64, configuration raft.Configuration) {
	if f.log.await(ids.Index(index)) == nil {
		f.ConfigurationStore.StoreConfiguration(index, configuration)
	}
}

// Snapshot fails after a failure of the disk: the state may have entries that are not on disk.
func (f parallelFSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.log.failure(); err != nil {
		return nil, err
	}
	return f.ConfigurationStore.Snapshot()
}
