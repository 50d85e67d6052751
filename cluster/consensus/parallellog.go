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

// How many entries, and bytes of them, may be in memory only before a leader waits for its disk.
const (
	maxUnwritten      = 256
	maxUnwrittenBytes = 8 << 20
)

// parallelLog lets a leader's followers write an entry while the leader itself still does (Ongaro, Consensus: Bridging Theory
// and Practice, section 10.2.1). Raft sends an entry on when its log has stored it, and then counts the leader among those
// who have it on disk. This log has stored a leader's commands as soon as it knows them, and writes them meanwhile. So raft
// may believe an entry committed that is on too few disks yet, and until it is on this one nobody may act on that belief:
//
//   - the state machine waits (parallelFSM), and with it all who read or are waiting for an answer;
//   - followers are not told (transport);
//   - nothing is stored in a later term: not the term itself, not a vote (voteStore). So whoever is elected without this
//     node's vote or with it has the entry, unless this node has lost it in a crash before it was on disk. Then nobody has
//     acted on it, and it is an entry that was never committed.
//
// Entries that raft itself acts on, and those that come from another leader, are on disk when they are stored.
type parallelLog struct {
	raft.LogStore // the log on disk

	raft    atomic.Pointer[raft.Raft] // whose log it is; nil: all is on disk when it is stored
	onStore func()                    // may be nil

	mu        sync.Mutex
	changed   *sync.Cond
	unwritten []*raft.Log // stored, but not on disk yet
	bytes     uint64      // of these
	failed    error       // the disk's, for good
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

// write brings entries to the disk until the log is closed.
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

// await waits until all entries up to one are on disk.
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

// failure answers the disk's, nil as long as it has not failed.
func (l *parallelLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// flush waits until all is on disk.
func (l *parallelLog) flush() error { return l.await(math.MaxUint64) }

// committed limits what this node says is committed to what it has on disk.
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

// close waits until all is on disk.
func (l *parallelLog) close() {
	l.mu.Lock()
	l.closing = true
	l.changed.Broadcast()
	l.mu.Unlock()
	<-l.closed
}

// parallelFSM applies what is on this node's disk.
type parallelFSM struct {
	raft.ConfigurationStore
	log *parallelLog
}

// Apply answers what the state machine does, or an error if the entry is not on disk and will not be: then this node applies no
// more, though raft counts on.
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

// Snapshot fails once the disk has: what raft believes to be in the state may not be.
func (f parallelFSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.log.failure(); err != nil {
		return nil, err
	}
	return f.ConfigurationStore.Snapshot()
}
