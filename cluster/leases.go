package cluster

import (
	"context"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// DefaultSessionTTL is how long a session lasts without a keepalive.
const DefaultSessionTTL = 15 * time.Second

// sessionLeases is what the leader knows of the sessions beyond their records: until when each has been
// promised to last. It is kept in memory only; a new leader gives everyone a full TTL.
type sessionLeases struct {
	ttl time.Duration

	mu       sync.Mutex
	sessions map[ids.Session]*sessionLease
	ticked   time.Duration // monotonic time at which this process surely ran
}

type sessionLease struct {
	renewed   time.Duration // monotonic time from which its TTL counts
	keepalive int64         // cluster time of the last one; 0: none since this node leads
	offset    time.Duration // of its host's clock
	ending    bool          // it is being given up on, and is not to be renewed
}

func newSessionLeases(ttl time.Duration) *sessionLeases {
	if ttl == 0 {
		ttl = DefaultSessionTTL
	}
	return &sessionLeases{ttl: ttl, sessions: make(map[ids.Session]*sessionLease)}
}

// reset begins to lead: nobody is known to have been silent.
func (l *sessionLeases) reset(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = make(map[ids.Session]*sessionLease)
	l.ticked = now
}

// renew notes a keepalive that has just come. It is refused when the session is being given up on.
func (l *sessionLeases) renew(id ids.Session, now time.Duration, clusterTime int64, offset time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.known(id, now)
	if s.ending {
		return false
	}
	s.renewed, s.keepalive, s.offset = max(s.renewed, now), clusterTime, offset
	return true
}

func (l *sessionLeases) known(id ids.Session, now time.Duration) *sessionLease {
	s, found := l.sessions[id]
	if !found {
		s = &sessionLease{renewed: now}
		l.sessions[id] = s
	}
	return s
}

// sessionInterval is how often the leader looks for expired sessions.
const sessionInterval = 500 * time.Millisecond

// pauseLimit is the longest time between two ticks after which a leader still counts what it did not hear as silence. A process that was
// stopped for longer may find keepalives that wait to be read.
const pauseLimit = 3 * sessionInterval

// watch notes that this process runs, for as long as leads reports true. It has a goroutine of its own: the leader loop waits for the
// disk, and a slow disk is no pause in which keepalives pile up.
func (l *sessionLeases) watch(ctx context.Context, leads func() bool) {
	ticks := time.NewTicker(sessionInterval)
	defer ticks.Stop()
	for leads() {
		select {
		case <-ticks.C:
			l.tick(readClocks().mono)
		case <-ctx.Done():
			return
		}
	}
}

func (l *sessionLeases) tick(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.ticked > pauseLimit {
		for _, s := range l.sessions {
			if !s.ending {
				s.renewed = now
			}
		}
	}
	l.ticked = max(l.ticked, now)
}

// expired returns the live sessions whose TTL is over, marked as ending, and forgets the sessions that are not live any more.
func (l *sessionLeases) expired(now time.Duration, live []ids.Session) []ids.Session {
	l.tick(now) // before watch has noticed a pause
	l.mu.Lock()
	defer l.mu.Unlock()
	sessions := make(map[ids.Session]*sessionLease, len(live))
	var over []ids.Session
	for _, id := range live {
		s := l.known(id, now)
		sessions[id] = s
		if now-s.renewed > l.ttl {
			s.ending = true
			over = append(over, id)
		}
	}
	l.sessions = sessions
	return over
}

// spare takes back that a session is ending.
func (l *sessionLeases) spare(id ids.Session, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, found := l.sessions[id]; found {
		s.ending, s.renewed = false, now
	}
}

// extremes are for how long the most silent session has been so, and the offset of the clock that is most wrong.
func (l *sessionLeases) extremes(now time.Duration) (silent, offset time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		silent = max(silent, now-s.renewed)
		if s.offset.Abs() > offset.Abs() {
			offset = s.offset
		}
	}
	return silent, offset
}

// get answers what is known of a session.
func (l *sessionLeases) get(id ids.Session, now time.Duration) sessionLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.known(id, now)
}
