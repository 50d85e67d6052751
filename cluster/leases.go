package cluster

import (
	"sync"
	"time"

	"lockfs/raftstore/fault"
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
	looked   time.Duration // monotonic time of the last look for expired ones
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
	if !fault.OldSilence {
		l.sessions = make(map[ids.Session]*sessionLease)
	}
	l.looked = now
}

// renew notes a keepalive that has just come. It is refused when the session is being given up on.
func (l *sessionLeases) renew(id ids.Session, now time.Duration, clusterTime int64, offset time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.known(id, now)
	if s.ending {
		return false
	}
	if fault.LateKeepalives && now-s.renewed > l.ttl/2 {
		return true
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

// sessionInterval is how often the leader looks for sessions whose lease is over.
const sessionInterval = 500 * time.Millisecond

// pauseLimit is the longest time between two looks after which a leader still trusts its own silence:
// if it was stopped for longer, keepalives may be waiting to be read.
const pauseLimit = 3 * sessionInterval

// expired answers those of the live sessions whose lease is over, marked as ending, and forgets those
// that are not live any more.
func (l *sessionLeases) expired(now time.Duration, live []ids.Session) []ids.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	paused := now-l.looked > pauseLimit
	l.looked = now
	sessions := make(map[ids.Session]*sessionLease, len(live))
	var over []ids.Session
	for _, id := range live {
		s := l.known(id, now)
		sessions[id] = s
		switch {
		case paused && !s.ending:
			s.renewed = now
		case now-s.renewed > l.ttl:
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
