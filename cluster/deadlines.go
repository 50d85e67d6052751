package cluster

import (
	"context"
	"strings"
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// DefaultSessionTTL is how long a session lasts without a keepalive.
const DefaultSessionTTL = 15 * time.Second

// sessionDeadlines are the times until which the leader has promised to keep sessions. They are in memory
// only; a new leader gives every session a full TTL.
type sessionDeadlines struct {
	ttl time.Duration

	mu       sync.Mutex
	sessions map[ids.Session]*sessionDeadline
	look     uint64        // number of the last call of expired
	ticked   time.Duration // last monotonic time at which this process ran
}

type sessionDeadline struct {
	renewed   time.Duration // monotonic time from which its TTL counts
	keepalive int64         // cluster time of the last one; 0: none since this node leads
	offset    time.Duration // of its host's clock
	program   string        // version of the mount's program
	ending    bool          // it is about to end, and cannot be renewed
	look      uint64        // last call of expired in which it was live
}

func newSessionDeadlines(ttl time.Duration) *sessionDeadlines {
	if ttl == 0 {
		ttl = DefaultSessionTTL
	}
	return &sessionDeadlines{ttl: ttl, sessions: make(map[ids.Session]*sessionDeadline)}
}

// reset begins a term: no session has been silent yet.
func (d *sessionDeadlines) reset(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = make(map[ids.Session]*sessionDeadline)
	d.ticked = now
}

// renew records a keepalive. It returns false for a session that is about to end.
func (d *sessionDeadlines) renew(id ids.Session, now time.Duration, clusterTime int64, offset time.Duration, program string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.known(id, now)
	if s.ending {
		return false
	}
	s.renewed, s.keepalive, s.offset = max(s.renewed, now), clusterTime, offset
	s.program = strings.ToValidUTF8(program[:min(len(program), longestProgram)], "") // messages refuse other texts
	return true
}

// longestProgram limits the bytes kept of a program's version.
const longestProgram = 64

func (d *sessionDeadlines) known(id ids.Session, now time.Duration) *sessionDeadline {
	s, found := d.sessions[id]
	if !found {
		s = &sessionDeadline{renewed: now}
		d.sessions[id] = s
	}
	return s
}

// sessionInterval is how often the leader looks for expired sessions.
const sessionInterval = 500 * time.Millisecond

// pauseLimit is the longest time between two ticks in which missing keepalives count. After a longer
// pause of the process, unread keepalives may wait.
const pauseLimit = 3 * sessionInterval

// watch ticks while leads reports true. It has a goroutine of its own, because a slow disk blocks the
// leader loop without delaying keepalives.
func (d *sessionDeadlines) watch(ctx context.Context, leads func() bool) {
	ticks := time.NewTicker(sessionInterval)
	defer ticks.Stop()
	for leads() {
		select {
		case <-ticks.C:
			d.tick(readClocks().mono)
		case <-ctx.Done():
			return
		}
	}
}

func (d *sessionDeadlines) tick(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now-d.ticked > pauseLimit {
		for _, s := range d.sessions {
			if !s.ending {
				s.renewed = now
			}
		}
	}
	d.ticked = max(d.ticked, now)
}

// expired returns the live sessions whose TTL is over and marks them as ending. It forgets all other
// sessions.
func (d *sessionDeadlines) expired(now time.Duration, live []namespace.LiveSession) (over []namespace.LiveSession) {
	d.tick(now) // before watch notices a pause
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look++
	for _, session := range live {
		s := d.known(session.ID, now)
		s.look = d.look
		if now-s.renewed > d.ttl {
			s.ending = true
			over = append(over, session)
		}
	}
	if len(d.sessions) > len(live) {
		for id, s := range d.sessions {
			if s.look != d.look {
				delete(d.sessions, id)
			}
		}
	}
	return over
}

// cancelEnding renews a session that was active after all.
func (d *sessionDeadlines) cancelEnding(id ids.Session, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, found := d.sessions[id]; found {
		s.ending, s.renewed = false, now
	}
}

// worst returns the longest time without a keepalive, and the largest clock offset.
func (d *sessionDeadlines) worst(now time.Duration) (silent, offset time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		silent = max(silent, now-s.renewed)
		if s.offset.Abs() > offset.Abs() {
			offset = s.offset
		}
	}
	return silent, offset
}

// get returns the deadline of a session.
func (d *sessionDeadlines) get(id ids.Session, now time.Duration) sessionDeadline {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.known(id, now)
}
