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
	// mostReserve is as large as the reserve gets: for some segments of the log, and a snapshot of a state of usual size.
	mostReserve = 32 << 20
	// spaceTick is how often a write is tried again that waits for space, and how often somebody looks how much there is: a file
	// system tells nobody that it has some again.
	spaceTick = 500 * time.Millisecond
)

// space is what is free on the disk of a data directory. A part of it is kept in a file for the time when others have filled the
// disk: with that the log goes on, and a snapshot can be taken, which makes room. A write that finds no space even so waits for it.
// Nothing is acknowledged meanwhile: to those who wait the disk is a slow one.
type space struct {
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

func newSpace(dir string, minFree uint64, logger *slog.Logger) *space {
	s := &space{dir: dir, minFree: minFree, logger: logger, released: make(chan struct{}, 1), ended: make(chan struct{})}
	s.measure()
	return s
}

// persist does a write until there is space for it, or nobody waits any more. A write that failed must be such that it can be done
// again, or is refused then with another error, as by a log (wal.Log), which waits for space itself.
func (s *space) persist(write func() error) error {
	err := write()
	if !isNoSpace(err) {
		return err
	}
	s.release() // unless somebody else just has
	err = write()
	if !isNoSpace(err) || !s.waits.Load() {
		return err
	}
	if s.waiting.Add(1) == 1 {
		s.logger.Error("the disk is full: this node takes no part in the cluster until there is space", "dir", s.dir)
	}
	for isNoSpace(err) && s.pause() {
		s.release()
		err = write()
	}
	if s.waiting.Add(-1) == 0 && err == nil {
		s.logger.Info("there is space on the disk again: this node goes on", "dir", s.dir)
	}
	return err
}

func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// pause is false once nobody is to wait any more.
func (s *space) pause() bool {
	select {
	case <-time.After(spaceTick):
		return true
	case <-s.ended:
		return false
	}
}

// isFull tells whether some write waits for space.
func (s *space) isFull() bool { return s.waiting.Load() > 0 }

// close has writes fail that wait for space. No reserve is made afterwards.
func (s *space) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end.Do(func() { close(s.ended) })
}

func (s *space) closed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// reserveSize is how large the reserve is, in bytes.
func (s *space) reserveSize() uint64 { return min(s.minFree/2, mostReserve) }

func (s *space) reserve() string { return filepath.Join(s.dir, reserveFile) }

// release gives the reserve up, and tells whether there was one.
func (s *space) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if os.Remove(s.reserve()) != nil {
		return false
	}
	s.logger.Warn("the disk is full: the reserve is used up", "dir", s.dir, "bytes", s.reserveSize())
	select {
	case s.released <- struct{}{}:
	default:
	}
	return true
}

// free answers how many bytes are free besides those of the reserve, or would be if there was one.
func (s *space) free() (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.dir, &fs); err != nil {
		return 0, err
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if !s.hasReserve() {
		free -= min(free, s.reserveSize())
	}
	return free, nil
}

func (s *space) hasReserve() bool {
	info, err := os.Stat(s.reserve())
	return err == nil && info.Size() == int64(s.reserveSize())
}

// watch keeps the reserve until the context ends.
func (s *space) watch(ctx context.Context) {
	if s.minFree == 0 {
		_ = os.Remove(s.reserve())
		return
	}
	ticker := time.NewTicker(spaceTick)
	defer ticker.Stop()
	for {
		s.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look finds out how much is free, and fills the reserve when there is enough again.
func (s *space) look() {
	s.measure()
	if s.short.Load() || s.hasReserve() || s.noReserve {
		return
	}
	if err := s.fill(); err != nil && !isNoSpace(err) {
		s.logger.Warn("there is no reserve for a full disk", "dir", s.dir, "error", err)
		s.noReserve = true
	}
}

// measure finds out how much is free: nothing while a write finds no space, whatever there is for others.
func (s *space) measure() {
	free, err := s.free()
	if err != nil {
		return // writes fail too then, and tell
	}
	if s.isFull() {
		free = 0
	}
	s.lastFree.Store(free)
	s.short.Store(free < s.minFree)
}

func (s *space) fill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() {
		return nil
	}
	file, err := os.OpenFile(s.reserve(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, int64(s.reserveSize()))
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(s.reserve()))
	}
	return durable.SyncDir(s.dir)
}
