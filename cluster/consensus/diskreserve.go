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

	"lockfs/cluster/atomicfile"
)

const (
	// maxReserve is enough for some segments of the log, and a snapshot of usual size.
	maxReserve = 32 << 20
	// spaceInterval is the time between two attempts of a waiting write, and between checks of the free
	// space. File systems do not notify.
	spaceInterval = 500 * time.Millisecond
)

// diskReserve watches the free space of a data directory's disk, and keeps a reserve file. When the disk
// is full, the reserve is deleted: the log continues, and a snapshot frees space. A write without space
// even then waits. Nothing is acknowledged meanwhile; to callers the disk is slow.
type diskReserve struct {
	dir     string
	minFree uint64
	logger  *slog.Logger

	waits    atomic.Bool   // writes wait for space; before raft runs they fail
	waiting  atomic.Int32  // writes
	short    atomic.Bool   // less than minFree is free
	lastFree atomic.Uint64 // bytes, at the last check
	released chan struct{} // signals the deletion of the reserve
	ended    chan struct{} // closed: writes do not wait any more
	end      sync.Once

	noReserve bool // the disk cannot have one; used by refill

	mu sync.Mutex // guards the reserve
}

func newDiskReserve(dir string, minFree uint64, logger *slog.Logger) *diskReserve {
	s := &diskReserve{dir: dir, minFree: minFree, logger: logger, released: make(chan struct{}, 1), ended: make(chan struct{})}
	s.measure()
	return s
}

// retryWhenFull repeats a write until there is space, or close. A failed write must be repeatable. The
// log refuses a repetition with another error, and waits for space itself (wal.Log).
func (r *diskReserve) retryWhenFull(write func() error) error {
	err := write()
	if !isNoSpace(err) {
		return err
	}
	r.release() // another write may have done so
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
		r.logger.Info("the disk has free space again; continuing", "dir", r.dir)
	}
	return err
}

func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// pause returns false after close.
func (r *diskReserve) pause() bool {
	select {
	case <-time.After(spaceInterval):
		return true
	case <-r.ended:
		return false
	}
}

// isFull reports whether a write waits for space.
func (r *diskReserve) isFull() bool { return r.waiting.Load() > 0 }

// close makes waiting writes fail. No reserve is made afterwards.
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

// reserveSize returns the size of the reserve in bytes.
func (r *diskReserve) reserveSize() uint64 { return min(r.minFree/2, maxReserve) }

func (r *diskReserve) reserve() string { return filepath.Join(r.dir, reserveFile) }

// release deletes the reserve, and reports whether there was one.
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

// free returns the free bytes besides those of the reserve, present or not.
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

// watch maintains the reserve until ctx ends.
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

// refill measures the free space, and creates the reserve if there is enough.
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

// measure measures the free space: 0 while a write finds none.
func (r *diskReserve) measure() {
	free, err := r.free()
	if err != nil {
		return // writes fail too then, and report it
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
	return atomicfile.SyncDir(r.dir)
}
