package consensus

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A hanging disk of the leader blocks the whole cluster, one of a follower only that node.
const (
	diskTick = 500 * time.Millisecond
	// leaderDiskTicks are about 5 s. An operation of a mount waits longer, so it survives the election.
	leaderDiskTicks = 10
	// diskTicks are about 20 s. On a busy disk a write of the log may wait for others.
	diskTicks = 40
)

// LeaderDiskLimit is how long a leader's disk may hang. Timeouts of requests to the leader are longer.
const LeaderDiskLimit = leaderDiskTicks * diskTick

// disk watches this node's writes. It counts time in ticks of its own: after a pause of the process it
// continues with a tick or two, and the wall clock does not matter.
type disk struct {
	path     string
	fatal    func(error)              // gets the reason why this process cannot continue
	stepDown *StepDown                // begins then too, so that others need not wait for the end of the process
	writing  func(func() error) error // does each write; nil: a plain write
	wrote    func(time.Duration)      // gets the time of each write; nil disables it
	space    *diskReserve

	mu      sync.Mutex
	waiting map[*diskWrite]struct{}
	stopped chan struct{} // closed at the end of watch
	stop    sync.Once
}

type diskWrite struct{ ticks int } // ticks since it began

func newDisk(path string, fatal func(error), silence *StepDown, space *diskReserve) *disk {
	return &disk{
		path: path, fatal: fatal, stepDown: silence, space: space, waiting: make(map[*diskWrite]struct{}), stopped: make(chan struct{}),
	}
}

// do writes, and waits while the disk is full. Any other failure ends the process: a voter that cannot
// write must not lead.
func (d *disk) do(write func() error) error {
	err := d.space.retryWhenFull(func() error { return d.timed(write) })
	if err != nil && !d.closed() && !d.space.closed() {
		d.fail(fmt.Errorf("write %s: %w", d.path, err))
	}
	return err
}

func (d *disk) timed(write func() error) error {
	w := new(diskWrite)
	d.mu.Lock()
	d.waiting[w] = struct{}{}
	d.mu.Unlock()
	if d.writing != nil {
		alone := write
		write = func() error { return d.writing(alone) }
	}
	began := time.Now()
	err := write()
	if d.wrote != nil {
		d.wrote(time.Since(began))
	}
	d.mu.Lock()
	delete(d.waiting, w)
	d.mu.Unlock()
	return err
}

func (d *disk) fail(err error) {
	d.fatal(err)
	d.stepDown.Begin()
}

// watch runs until the disk is closed, or fails. leads reports whether others wait for this node.
func (d *disk) watch(leads func() bool) {
	ticker := time.NewTicker(diskTick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if d.tick(leads()) {
				return
			}
		case <-d.stopped:
			return
		}
	}
}

// tick reports whether the disk has failed: a write takes too long, and not for lack of space.
func (d *disk) tick(leads bool) bool {
	if d.space.isFull() {
		return false
	}
	longest := 0
	d.mu.Lock()
	for w := range d.waiting {
		w.ticks++
		longest = max(longest, w.ticks)
	}
	d.mu.Unlock()
	if longest < leaderDiskTicks || longest < diskTicks && !leads {
		return false
	}
	d.fail(fmt.Errorf("write %s: the disk has not answered for %v", d.path, time.Duration(longest)*diskTick))
	return true
}

// close ends the watch: later errors do not matter.
func (d *disk) close() { d.stop.Do(func() { close(d.stopped) }) }

func (d *disk) closed() bool {
	select {
	case <-d.stopped:
		return true
	default:
		return false
	}
}

// watchedLog ends the process when the log's disk fails or hangs.
type watchedLog struct {
	raft.LogStore
	disk *disk
}

var _ raft.MonotonicLogStore = (*watchedLog)(nil)

// IsMonotonic says that the log has no gaps, so raft empties it when a snapshot replaces it.
func (l *watchedLog) IsMonotonic() bool { return true }

// StoreLog is part of raft.LogStore.
func (l *watchedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore.
func (l *watchedLog) StoreLogs(entries []*raft.Log) error {
	return l.disk.do(func() error { return l.LogStore.StoreLogs(entries) })
}

// DeleteRange is part of raft.LogStore. After an error raft would continue with entries that it believes
// deleted.
func (l *watchedLog) DeleteRange(first, last uint64) error {
	return l.disk.do(func() error { return l.LogStore.DeleteRange(first, last) })
}
