package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// How a node that wants to join is dealt with. A voter that does not answer can cost the cluster its majority, so nobody becomes
// one on his own word.
const (
	dialBackTimeout = 1500 * time.Millisecond // is below rpc.AttemptTimeout
	joinWait        = time.Second             // for which a request to join is kept, the same
	joinInterval    = 100 * time.Millisecond  // between looks at those who join
	idleInterval    = 2 * time.Second         // and for some while there are none
	catchUpWindow   = 500 * time.Millisecond  // by which a voter may be behind when it becomes one
	rejectionTTL    = 10 * time.Second        // for which it is remembered why somebody was dropped
)

// probationLimits are how long a node that wants to join is waited for.
type probationLimits struct {
	dialBack time.Duration // for it to be reached at all
	silence  time.Duration // for it to answer again
	progress time.Duration // for it to apply something new: a snapshot of a large state takes a while
}

// learners is what a leader remembers of those who want to join. Who they are is in raft's configuration, where they have no
// vote yet, so another leader goes on with them.
type learners struct {
	mu         sync.Mutex
	limits     probationLimits
	probations map[string]*probation
	failures   map[string]*failures // those that were not reached, and are not in raft's configuration
	rejections map[string]rejection // those that were dropped
	changed    chan struct{}        // closed when one was admitted or dropped
	wakeup     chan struct{}        // has something when there is a new one; holds one
}

type failures struct{ first, last time.Duration } // monotonic times

type rejection struct {
	reason string
	at     time.Duration // monotonic time
}

// probation is of one that is in raft's configuration without a vote. Its times are sums of what passed between looks, as far as a
// leader that was not stopped meanwhile would look.
type probation struct {
	address raft.ServerAddress
	checked time.Duration // monotonic time
	silent  time.Duration // for how long it has not answered
	stuck   time.Duration // for how long it has not applied anything new
	applied ids.Index
	goal    ids.Index     // what it must have applied to become a voter: all that was committed at
	goalSet time.Duration // this monotonic time
	result  string        // why it is no voter yet
}

func newLearners() *learners {
	c := &learners{
		limits:  probationLimits{dialBack: 10 * time.Second, silence: 20 * time.Second, progress: 5 * time.Minute},
		changed: make(chan struct{}), wakeup: make(chan struct{}, 1),
	}
	c.reset()
	return c
}

// reset begins to lead: nobody is on trial yet.
func (l *learners) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probations, l.failures, l.rejections = make(map[string]*probation), make(map[string]*failures), make(map[string]rejection)
}

// noteUnreachable notes that a newcomer cannot be reached, and tells whether that has been so for too long. Tries far apart are of two
// starts of it.
func (l *learners) noteUnreachable(id string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.failures[id]
	if m == nil || now-m.last > rejectionTTL {
		m = &failures{first: now}
		l.failures[id] = m
	}
	m.last = now
	if now-m.first < l.limits.dialBack {
		return false
	}
	delete(l.failures, id)
	return true
}

// noteReachable forgets that a newcomer could not be reached.
func (l *learners) noteReachable(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, id)
}

// reject remembers for a while why one was dropped: it hears so when it asks again.
func (l *learners) reject(id, reason string, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.probations, id)
	l.rejections[id] = rejection{reason, now}
}

// rejected answers why one was dropped just now, or nothing.
func (l *learners) rejected(id string, now time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, found := l.rejections[id]
	if !found || now-r.at > rejectionTTL {
		return ""
	}
	return r.reason
}

// begin starts the trial of a newcomer, or goes on with it.
func (l *learners) begin(server raft.Server, now time.Duration, committed ids.Index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.probations[string(server.ID)]
	if t == nil || t.address != server.Address {
		l.probations[string(server.ID)] = &probation{
			address: server.Address, checked: now, goal: committed, goalSet: now, result: "it has not been asked yet",
		}
	}
}

// evaluate notes how a newcomer answered: what it has applied, or err. ready says that it can become a voter, reason why it
// is to be dropped.
func (l *learners) evaluate(id string, now time.Duration, applied, committed ids.Index, err error) (ready bool, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.probations[id]
	if t == nil {
		return false, ""
	}
	passed := min(now-t.checked, 2*dialBackTimeout)
	t.checked = now
	t.silent, t.stuck = t.silent+passed, t.stuck+passed
	if err == nil {
		t.silent = 0
		t.result = fmt.Sprintf("it has applied entry %d of %d", applied, t.goal)
		if applied > t.applied {
			t.applied, t.stuck = applied, 0
		}
	} else {
		t.result = err.Error()
	}
	ready = err == nil && applied >= t.goal
	if now-t.goalSet >= catchUpWindow {
		t.goal, t.goalSet = committed, now
	}
	switch {
	case ready:
	case t.silent > l.limits.silence:
		reason = fmt.Sprintf("it has not answered for %v (%s)", l.limits.silence, t.result)
	case t.stuck > l.limits.progress:
		reason = fmt.Sprintf("it has not caught up any further for %v (%s)", l.limits.progress, t.result)
	}
	return ready, reason
}

// setResult notes why one that has caught up is no voter yet.
func (l *learners) setResult(id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.probations[id]; t != nil {
		t.result = err.Error()
	}
}

// result is why a newcomer is no voter yet.
func (l *learners) result(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.probations[id]; t != nil {
		return t.result
	}
	return ""
}

// keepOnly forgets trials of others, and what is too old to matter.
func (l *learners) keepOnly(joining []raft.Server, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.probations {
		if !slices.ContainsFunc(joining, func(s raft.Server) bool { return string(s.ID) == id }) {
			delete(l.probations, id)
		}
	}
	for id, m := range l.failures {
		if now-m.last > rejectionTTL {
			delete(l.failures, id)
		}
	}
	for id, r := range l.rejections {
		if now-r.at > rejectionTTL {
			delete(l.rejections, id)
		}
	}
}

func (l *learners) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *learners) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}
