package consensus

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// meteredLog knows the sizes of a log's entries.
type meteredLog struct {
	*watchedLog
	grown chan struct{} // signals growthStep new bytes

	mu    sync.Mutex
	sizes entrySizes
	fresh uint64 // bytes since the last signal
}

var _ raft.MonotonicLogStore = (*meteredLog)(nil)

// growthStep is the growth after which a due snapshot is checked.
const growthStep = 4 << 20

func newMeteredLog(log *watchedLog, sizes entrySizes) *meteredLog {
	return &meteredLog{watchedLog: log, grown: make(chan struct{}, 1), sizes: sizes}
}

// StoreLog is part of raft.LogStore.
func (l *meteredLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore.
func (l *meteredLog) StoreLogs(entries []*raft.Log) error {
	if err := l.watchedLog.StoreLogs(entries); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entry := range entries {
		l.sizes.add(entry)
		l.fresh += entrySize(entry)
	}
	if l.fresh >= growthStep {
		l.fresh = 0
		select {
		case l.grown <- struct{}{}:
		default:
		}
	}
	return nil
}

// DeleteRange is part of raft.LogStore.
func (l *meteredLog) DeleteRange(first, last uint64) error {
	if err := l.watchedLog.DeleteRange(first, last); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sizes.remove(ids.Index(first), ids.Index(last))
	return nil
}

// between returns the size of the entries after one, up to another.
func (l *meteredLog) between(after, last ids.Index) (bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sizes.between(after, last)
}

// all returns the number of entries and their size.
func (l *meteredLog) all() (entries int, bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sizes.sizes), l.sizes.total
}

// newest returns how many of the newest entries fit into some bytes.
func (l *meteredLog) newest(bytes uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sizes.newest(bytes)
}

// entryOverhead is the approximate overhead of an entry in the log.
const entryOverhead = 32

func entrySize(entry *raft.Log) uint64 {
	return uint64(entryOverhead + len(entry.Data) + len(entry.Extensions))
}

func totalSize(entries []*raft.Log) (bytes uint64) {
	for _, entry := range entries {
		bytes += entrySize(entry)
	}
	return bytes
}

// entrySizes has the sizes of consecutive entries.
type entrySizes struct {
	first ids.Index
	sizes []uint32
	total uint64
}

// add appends an entry. One that does not follow the others starts anew, as after a snapshot.
func (s *entrySizes) add(entry *raft.Log) {
	if entry.Index != uint64(s.first)+uint64(len(s.sizes)) {
		s.first, s.sizes, s.total = ids.Index(entry.Index), nil, 0
	}
	s.sizes = append(s.sizes, uint32(entrySize(entry)))
	s.total += entrySize(entry)
}

func (s *entrySizes) remove(first, last ids.Index) {
	from, to := s.at(first), s.at(last+1)
	if from > 0 && from < to { // entries replaced by another leader
		s.total -= sum(s.sizes[from:])
		s.sizes = s.sizes[:from]
	} else if from < to {
		s.total -= sum(s.sizes[:to])
		s.sizes = slices.Clone(s.sizes[to:])
		s.first += ids.Index(to)
	}
}

// at returns the place of an entry's size, or the nearest end.
func (s *entrySizes) at(index ids.Index) int {
	return int(min(max(index, s.first)-s.first, ids.Index(len(s.sizes))))
}

func (s *entrySizes) between(after, last ids.Index) (bytes uint64) {
	from, to := s.at(after+1), s.at(last+1)
	if from >= to {
		return 0
	}
	return sum(s.sizes[from:to])
}

func sum(sizes []uint32) (bytes uint64) {
	for _, size := range sizes {
		bytes += uint64(size)
	}
	return bytes
}

func (s *entrySizes) newest(bytes uint64) (entries uint64) {
	for i := len(s.sizes) - 1; i >= 0 && uint64(s.sizes[i]) <= bytes; i-- {
		bytes -= uint64(s.sizes[i])
		entries++
	}
	return entries
}
