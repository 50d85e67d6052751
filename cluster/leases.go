package cluster

import (
	"sync"
	"time"

	"lockfs/raftstore/fault"
)

// DefaultSessionTerm is how long a session lasts without a keepalive.
const DefaultSessionTerm = 15 * time.Second

// terms is what the leader knows of the sessions beyond their records: until when each has been
// promised to last. It is kept in memory only; a new leader gives everyone a full term.
type terms struct {
	term time.Duration

	mu       sync.Mutex
	sessions map[uint64]*sessionTerm
	looked   time.Duration // monotonic time of the last look for expired ones
}

type sessionTerm struct {
	renewed   time.Duration // monotonic time from which its term counts
	keepalive int64         // cluster time of the last one; 0: none since this node took office
	offset    time.Duration // of its host's clock
	ending    bool          // it is being given up on, and is not to be renewed
}

func newTerms(term time.Duration) *terms {
	if term == 0 {
		term = DefaultSessionTerm
	}
	return &terms{term: term, sessions: make(map[uint64]*sessionTerm)}
}

// reset begins a term of office.
func (t *terms) reset(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = make(map[uint64]*sessionTerm)
	t.looked = now
}

// renew notes a keepalive that has just come. It is refused when the session is being given up on.
func (t *terms) renew(id uint64, now time.Duration, clusterTime int64, offset time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.known(id, now)
	if s.ending {
		return false
	}
	if fault.LateKeepalives && now-s.renewed > t.term/2 {
		return true
	}
	s.renewed, s.keepalive, s.offset = max(s.renewed, now), clusterTime, offset
	return true
}

func (t *terms) known(id uint64, now time.Duration) *sessionTerm {
	s, found := t.sessions[id]
	if !found {
		s = &sessionTerm{renewed: now}
		t.sessions[id] = s
	}
	return s
}

// pauseLimit is the longest time between two looks after which a leader still trusts its own silence:
// if it was stopped for longer, keepalives may be waiting to be read.
const pauseLimit = 3 * sessionLook

// expired answers those of the live sessions whose term is over, marked as ending, and forgets those
// that are not live any more.
func (t *terms) expired(now time.Duration, live []uint64) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	paused := now-t.looked > pauseLimit
	t.looked = now
	sessions := make(map[uint64]*sessionTerm, len(live))
	var over []uint64
	for _, id := range live {
		s := t.known(id, now)
		sessions[id] = s
		switch {
		case paused && !s.ending:
			s.renewed = now
		case now-s.renewed > t.term:
			s.ending = true
			over = append(over, id)
		}
	}
	t.sessions = sessions
	return over
}

// spare takes back that a session is ending.
func (t *terms) spare(id uint64, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, found := t.sessions[id]; found {
		s.ending, s.renewed = false, now
	}
}

// get answers what is known of a session.
func (t *terms) get(id uint64, now time.Duration) sessionTerm {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.known(id, now)
}
