package sim

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"lockfs/cluster"
)

// server is a voter on a host of its own.
type server struct {
	w      *world
	name   string
	h      *host
	mounts []*mount // in its process
	random *rand.Rand

	mu    sync.Mutex
	node  *cluster.Node // nil: it does not run
	disk  *disk
	life  int
	torn  image         // what the disk holds after the power has failed in a write
	wrong time.Duration // of its wall clock, and by how much that grows in each second
	drift time.Duration
	since time.Time
}

func (s *server) address() string { return s.h.address + ":7420" }

// clock is the wall clock of the host.
func (s *server) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return now.Add(s.wrong + time.Duration(now.Sub(s.since).Seconds()*float64(s.drift)))
}

// setClock has the wall clock be wrong.
func (s *server) setClock(wrong, drift time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong, s.drift, s.since = wrong, drift, time.Now()
}

func (s *server) running() *cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

func (s *server) config() cluster.Config {
	var lockDelay *time.Duration
	if s.w.lockers > 0 {
		lockDelay = new(time.Duration(s.w.seed%2) * time.Second)
	}
	return cluster.Config{
		LockDelay: lockDelay,
		Leases:    true,
		Name:      s.name, DataDir: s.disk.dir, Address: s.address(), Insecure: true, Logger: s.w.logger, SessionTTL: sessionTTL,
		SnapshotEntries: snapshotEntries, Network: s.h, Clock: s.clock, Writing: s.disk.writing,
	}
}

// sessionTTL is that of mounts, and snapshotEntries are so few that a history has several snapshots.
const (
	sessionTTL      = 3 * time.Second
	snapshotEntries = 48
)

// newDisk begins a life with what the disk holds.
func (s *server) newDisk(holds image) {
	s.life++
	s.disk = &disk{
		dir: filepath.Join(s.w.dir, s.name, fmt.Sprint(s.life)), gone: make(chan struct{}),
		random: rand.New(rand.NewPCG(s.random.Uint64(), 0)),
	}
	holds.write(s.disk.dir)
}

// start runs the server on what its disk holds. It may be stopped before it is open, as an only voter elects itself meanwhile.
func (s *server) start() {
	s.h.start()
	gone := s.disk.gone
	node, err := cluster.Open(s.config())
	select {
	case <-gone:
		if err == nil {
			s.w.closing.Go(func() { _ = node.Close() })
		}
		return
	default:
	}
	if err != nil {
		s.w.fail(fmt.Errorf("%s does not start again: %w", s.name, err))
		return
	}
	s.mu.Lock()
	s.node = node
	s.mu.Unlock()
	go func() {
		select {
		case err := <-node.Failed():
			if s.running() == node {
				s.w.fail(fmt.Errorf("%s cannot go on: %w", s.name, err))
			}
		case <-gone:
		}
	}()
	for _, m := range s.mounts {
		s.w.playing.Go(m.start)
	}
}

// stop ends the server's process, with the mounts in it. Nothing else may run meanwhile. It goes on with what is on its disk then.
func (s *server) stop(power bool) {
	s.mu.Lock()
	node := s.node
	s.node = nil
	torn := s.torn
	s.torn = nil
	s.mu.Unlock()
	s.h.stop(power)
	for _, m := range s.mounts {
		m.die()
	}
	if torn == nil {
		torn = readImage(s.disk.dir)
	}
	close(s.disk.gone)
	if node != nil {
		s.w.closing.Go(func() { _ = node.Close() })
	}
	s.newDisk(torn)
}
