package consensus

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/durable"
)

const (
	// maxReserve is as large as the reserve gets: for some segments of the log, and a snapshot of a state of usual size.
	maxReserve = 32 << 20
	// spaceInterval is how often a write is tried again that waits for space, and how often somebody looks how much there is: a file
	// system tells nobody that it has some again.
	spaceInterval = 500 * time.Millisecond
)

// diskReserve is what is free on the disk of a data directory. A part of it is kept in a file for the time when others have filled the
// disk: with that the log goes on, and a snapshot can be taken, which makes room. A write that finds no space even so waits for it.
// Nothing is acknowledged meanwhile: to those who wait the disk is a slow one.
type diskReserve struct {
	dir     string
	minFree uint64
	logger  *slog.Logger

	waits    atomic.Bool   // writes wait for space; else they fail, as they do until raft runs
	waiting  atomic.Int32  // writes
	short    atomic.Bool   // less than minFree is free
	lastFree atomic.Uint64 // bytes, when somebody looked last
	released chan struct{} // has something when the reserve is gone
	ended    chan struct{} // closed: nobody waits any more
	end      sync.Once

	noReserve bool // the disk cannot have one; for who looks

	mu sync.Mutex // for the reserve
}

func newDiskReserve(dir string, minFree uint64, logger *slog.Logger) *diskReserve {
	s := &diskReserve{dir: dir, minFree: minFree, logger: logger, released: make(chan struct{}, 1), ended: make(chan struct{})}
	s.measure()
	return s
}

// retryWhenFull does a write until there is space for it, or nobody waits any more. A write that failed must be such that it can be done
// again, or is refused then with another error, as by a log (wal.Log), which waits for space itself.
func (r *diskReserve) retryWhenFull(write func() error) error {
	err := write()
	if !isNoSpace(err) {
		return err
	}
	r.release() // unless somebody else just has
	err = write()
	if !isNoSpace(err) || !r.waits.Load() {
		return err
	}
	if r.waiting.Add(1) == 1 {
		r.logger.Error("the disk is full: this node takes no part in the cluster until there is space", "dir", r.dir)
	}
	for isNoSpace(err) && r.pause() {
		r.release()
		err = write()
	}
	if r.waiting.Add(-1) == 0 && err == nil {
		r.logger.Info("there is space on the disk again: this node goes on", "dir", r.dir)
	}
	return err
}

func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// pause is false once nobody is to wait any more.
func (r *diskReserve) pause() bool {
	select {
	case <-time.After(spaceInterval):
		return true
	case <-r.ended:
		return false
	}
}

// isFull tells whether some write waits for space.
func (r *diskReserve) isFull() bool { return r.waiting.Load() > 0 }

// close has writes fail that wait for space. No reserve is made afterwards.
func (r *diskReserve) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end.Do(func() { close(r.ended) })
}

func (r *diskReserve) closed() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// reserveSize is how large the reserve is, in bytes.
func (r *diskReserve) reserveSize() uint64 { return min(r.minFree/2, maxReserve) }

func (r *diskReserve) reserve() string { return filepath.Join(r.dir, reserveFile) }

// release gives the reserve up, and tells whether there was one.
func (r *diskReserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if os.Remove(r.reserve()) != nil {
		return false
	}
	r.logger.Warn("the disk is full: the reserve is used up", "dir", r.dir, "bytes", r.reserveSize())
	select {
	case r.released <- struct{}{}:
	default:
	}
	return true
}

// free answers how many bytes are free besides those of the reserve, or would be if there was one.
func (r *diskReserve) free() (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(r.dir, &fs); err != nil {
		return 0, err
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if !r.hasReserve() {
		free -= min(free, r.reserveSize())
	}
	return free, nil
}

func (r *diskReserve) hasReserve() bool {
	info, err := os.Stat(r.reserve())
	return err == nil && info.Size() == int64(r.reserveSize())
}

// watch keeps the reserve until the context ends.
func (r *diskReserve) watch(ctx context.Context) {
	if r.minFree == 0 {
		_ = os.Remove(r.reserve())
		return
	}
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	for {
		r.refill()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// refill finds out how much is free, and fills the reserve when there is enough again.
func (r *diskReserve) refill() {
	r.measure()
	if r.short.Load() || r.hasReserve() || r.noReserve {
		return
	}
	if err := r.fill(); err != nil && !isNoSpace(err) {
		r.logger.Warn("there is no reserve for a full disk", "dir", r.dir, "error", err)
		r.noReserve = true
	}
}

// measure finds out how much is free: nothing while a write finds no space, whatever there is for others.
func (r *diskReserve) measure() {
	free, err := r.free()
	if err != nil {
		return // writes fail too then, and tell
	}
	if r.isFull() {
		free = 0
	}
	r.lastFree.Store(free)
	r.short.Store(free < r.minFree)
}

func (r *diskReserve) fill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed() {
		return nil
	}
	file, err := os.OpenFile(r.reserve(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, int64(r.reserveSize()))
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(r.reserve()))
	}
	return durable.SyncDir(r.dir)
}
