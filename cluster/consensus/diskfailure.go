package consensus

import (
	"fmt"
	"sync"
	"time"
)

// A disk that hangs holds the whole cluster up while its node leads, and one node otherwise.
const (
	diskTick = 500 * time.Millisecond
	// leaderDiskTicks are about 5 s: a mount's operation waits longer, so it survives until another leads.
	leaderDiskTicks = 10
	// diskTicks are about 20 s: on a busy disk a write of the log may have to wait for others.
	diskTicks = 40
)

// LeaderDiskLimit is for how long a leader's disk may hang. What waits for the leader is to be given more.
const LeaderDiskLimit = leaderDiskTicks * diskTick

// disk watches what a node writes before it answers anybody. Time is counted in ticks of its own: a process that was stopped
// goes on with a tick or two, and a wall clock that is set means nothing.
type disk struct {
	path     string
	fatal    func(error)              // is told that this process cannot go on
	stepDown *StepDown                // begins then, too: others need not wait for the end of the process
	writing  func(func() error) error // does each write; nil: the write is all
	wrote    func(time.Duration)      // is told how long each write took; nil: nobody wants to know
	space    *diskReserve

	mu      sync.Mutex
	waiting map[*diskWrite]struct{}
	stopped chan struct{} // closed when nobody watches any more
	stop    sync.Once
}

type diskWrite struct{ ticks int } // for how many ticks it has been under way

func newDisk(path string, fatal func(error), silence *StepDown, space *diskReserve) *disk {
	return &disk{
		path: path, fatal: fatal, stepDown: silence, space: space, waiting: make(map[*diskWrite]struct{}), stopped: make(chan struct{}),
	}
}

// do writes something, and waits for that while the disk is full. That it fails otherwise is the end: a voter that cannot write
// exits rather than lead.
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

// watch goes on until the disk is closed, or fails. leads tells whether others wait for this node.
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

// tick tells whether the disk has failed: a write has taken too long, and not because it waits for space.
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

// close says that errors mean nothing any more.
func (d *disk) close() { d.stop.Do(func() { close(d.stopped) }) }

func (d *disk) closed() bool {
	select {
	case <-d.stopped:
		return true
	default:
		return false
	}
}
