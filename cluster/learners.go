package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// An unreachable voter can cost the cluster its quorum, so a joining node first has to answer and to
// catch up.
const (
	dialBackTimeout = 1500 * time.Millisecond // below rpc.AttemptTimeout
	joinWait        = time.Second             // of one join request, below rpc.AttemptTimeout
	joinInterval    = 100 * time.Millisecond  // between two checks
	idleInterval    = 2 * time.Second         // the same, without learners
	catchUpWindow   = 500 * time.Millisecond  // how far a learner may be behind when it is promoted
	rejectionTTL    = 10 * time.Second        // how long a rejection is remembered
)

// probationLimits are the longest waits for a joining node.
type probationLimits struct {
	dialBack time.Duration // for the first contact
	silence  time.Duration // without an answer
	progress time.Duration // without a newly applied entry: a large snapshot takes a while
}

// learners is the leader's memory of joining nodes. Raft's configuration has them as nonvoters, so
// another leader continues with them.
type learners struct {
	mu         sync.Mutex
	limits     probationLimits
	probations map[string]*probation
	failures   map[string]*failures // of nodes outside raft's configuration
	rejections map[string]rejection // of removed learners
	changed    chan struct{}        // closed after a promotion or rejection
	wakeup     chan struct{}        // signals a new learner; capacity 1
}

type failures struct{ first, last time.Duration } // monotonic times

type rejection struct {
	reason string
	at     time.Duration // monotonic time
}

// probation is of one learner. Its durations are sums of the times between checks, without pauses of the
// leader's process.
type probation struct {
	address raft.ServerAddress
	checked time.Duration // last check, monotonic time
	silent  time.Duration // without an answer
	stuck   time.Duration // without a newly applied entry
	applied ids.Index
	goal    ids.Index     // to be applied before promotion: the commit index at
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

// reset begins a term without any probation.
func (l *learners) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probations, l.failures, l.rejections = make(map[string]*probation), make(map[string]*failures), make(map[string]rejection)
}

// noteUnreachable records a failed dial, and reports whether the failures have lasted too long. Attempts
// far apart belong to two starts of the node.
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

// noteReachable forgets the failures of a node.
func (l *learners) noteReachable(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, id)
}

// reject remembers for a while why a learner was removed, for its next request.
func (l *learners) reject(id, reason string, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.probations, id)
	l.rejections[id] = rejection{reason, now}
}

// rejected returns the reason of a recent rejection, or "".
func (l *learners) rejected(id string, now time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, found := l.rejections[id]
	if !found || now-r.at > rejectionTTL {
		return ""
	}
	return r.reason
}

// begin starts or continues the probation of a learner.
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

// evaluate records the applied index of a learner, or its error. The learner is ready for promotion, or
// the reason says why it is rejected.
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

// setResult records why a learner that has caught up is no voter yet.
func (l *learners) setResult(id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.probations[id]; t != nil {
		t.result = err.Error()
	}
}

// result returns why a learner is no voter yet.
func (l *learners) result(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.probations[id]; t != nil {
		return t.result
	}
	return ""
}

// keepOnly forgets other probations and old records.
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
