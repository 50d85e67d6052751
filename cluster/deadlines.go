package cluster

import (
	"context"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// DefaultSessionTTL is how long a session lasts without a keepalive.
const DefaultSessionTTL = 15 * time.Second

// sessionDeadlines is what the leader knows of the sessions beyond their records: until when each has been
// promised to last. It is kept in memory only; a new leader gives everyone a full TTL.
type sessionDeadlines struct {
	ttl time.Duration

	mu       sync.Mutex
	sessions map[ids.Session]*sessionDeadline
	ticked   time.Duration // monotonic time at which this process surely ran
}

type sessionDeadline struct {
	renewed   time.Duration // monotonic time from which its TTL counts
	keepalive int64         // cluster time of the last one; 0: none since this node leads
	offset    time.Duration // of its host's clock
	ending    bool          // it is being given up on, and is not to be renewed
}

func newSessionDeadlines(ttl time.Duration) *sessionDeadlines {
	if ttl == 0 {
		ttl = DefaultSessionTTL
	}
	return &sessionDeadlines{ttl: ttl, sessions: make(map[ids.Session]*sessionDeadline)}
}

// reset begins to lead: nobody is known to have been silent.
func (d *sessionDeadlines) reset(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = make(map[ids.Session]*sessionDeadline)
	d.ticked = now
}

// renew notes a keepalive that has just come. It is refused when the session is being given up on.
func (d *sessionDeadlines) renew(id ids.Session, now time.Duration, clusterTime int64, offset time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.known(id, now)
	if s.ending {
		return false
	}
	s.renewed, s.keepalive, s.offset = max(s.renewed, now), clusterTime, offset
	return true
}

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

// pauseLimit is the longest time between two ticks after which a leader still counts what it did not hear as silence. A process that was
// stopped for longer may find keepalives that wait to be read.
const pauseLimit = 3 * sessionInterval

// watch notes that this process runs, for as long as leads reports true. It has a goroutine of its own: the leader loop waits for the
// disk, and a slow disk is no pause in which keepalives pile up.
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

// expired returns the live sessions whose TTL is over, marked as ending, and forgets the sessions that are not live any more.
func (d *sessionDeadlines) expired(now time.Duration, live []ids.Session) []ids.Session {
	d.tick(now) // before watch has noticed a pause
	d.mu.Lock()
	defer d.mu.Unlock()
	sessions := make(map[ids.Session]*sessionDeadline, len(live))
	var over []ids.Session
	for _, id := range live {
		s := d.known(id, now)
		sessions[id] = s
		if now-s.renewed > d.ttl {
			s.ending = true
			over = append(over, id)
		}
	}
	d.sessions = sessions
	return over
}

// cancelEnding takes back that a session is ending.
func (d *sessionDeadlines) cancelEnding(id ids.Session, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, found := d.sessions[id]; found {
		s.ending, s.renewed = false, now
	}
}

// worst are for how long the most silent session has been so, and the offset of the clock that is most wrong.
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

// get answers what is known of a session.
func (d *sessionDeadlines) get(id ids.Session, now time.Duration) sessionDeadline {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.known(id, now)
}
