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
	callBackTimeout = 1500 * time.Millisecond // is below rpc.AttemptTimeout
	joinWait        = time.Second             // for which a request to join is kept, the same
	joinInterval    = 100 * time.Millisecond  // between looks at those who join
	idleInterval    = 2 * time.Second         // and for some while there are none
	catchUpTime     = 500 * time.Millisecond  // by which a voter may be behind when it becomes one
	refusalTime     = 10 * time.Second        // for which it is remembered why somebody was dropped
)

// trialLimits are how long a node that wants to join is waited for.
type trialLimits struct {
	callBack time.Duration // for it to be reached at all
	silence  time.Duration // for it to answer again
	progress time.Duration // for it to apply something new: a snapshot of a large state takes a while
}

// newcomers is what a leader remembers of those who want to join. Who they are is in raft's configuration, where they have no
// vote yet, so another leader goes on with them.
type newcomers struct {
	mu       sync.Mutex
	patience trialLimits
	trials   map[string]*trial
	missed   map[string]*misses // those that were not reached, and are not in raft's configuration
	refusals map[string]refusal // those that were dropped
	changed  chan struct{}      // closed when one was admitted or dropped
	hurry    chan struct{}      // has something when there is a new one; holds one
}

type misses struct{ first, last time.Duration } // monotonic times

type refusal struct {
	reason string
	at     time.Duration // monotonic time
}

// trial is of one that is in raft's configuration without a vote. Its times are sums of what passed between looks, as far as a
// leader that was not stopped meanwhile would look.
type trial struct {
	address  raft.ServerAddress
	looked   time.Duration // monotonic time
	silent   time.Duration // for how long it has not answered
	stuck    time.Duration // for how long it has not applied anything new
	applied  ids.Index
	goal     ids.Index     // what it must have applied to become a voter: all that was committed at
	goalSet  time.Duration // this monotonic time
	lastWord string        // why it is no voter yet
}

func newNewcomers() *newcomers {
	c := &newcomers{
		patience: trialLimits{callBack: 10 * time.Second, silence: 20 * time.Second, progress: 5 * time.Minute},
		changed:  make(chan struct{}), hurry: make(chan struct{}, 1),
	}
	c.reset()
	return c
}

// reset begins to lead: nobody is on trial yet.
func (c *newcomers) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trials, c.missed, c.refusals = make(map[string]*trial), make(map[string]*misses), make(map[string]refusal)
}

// miss notes that a newcomer cannot be reached, and tells whether that has been so for too long. Tries far apart are of two
// starts of it.
func (c *newcomers) miss(id string, now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.missed[id]
	if m == nil || now-m.last > refusalTime {
		m = &misses{first: now}
		c.missed[id] = m
	}
	m.last = now
	if now-m.first < c.patience.callBack {
		return false
	}
	delete(c.missed, id)
	return true
}

// reached forgets that a newcomer could not be reached.
func (c *newcomers) reached(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missed, id)
}

// refuse remembers for a while why one was dropped: it hears so when it asks again.
func (c *newcomers) refuse(id, reason string, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trials, id)
	c.refusals[id] = refusal{reason, now}
}

// refused answers why one was dropped just now, or nothing.
func (c *newcomers) refused(id string, now time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, found := c.refusals[id]
	if !found || now-r.at > refusalTime {
		return ""
	}
	return r.reason
}

// begin starts the trial of a newcomer, or goes on with it.
func (c *newcomers) begin(server raft.Server, now time.Duration, committed ids.Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.trials[string(server.ID)]
	if t == nil || t.address != server.Address {
		c.trials[string(server.ID)] = &trial{
			address: server.Address, looked: now, goal: committed, goalSet: now, lastWord: "it has not been asked yet",
		}
	}
}

// judge notes how a newcomer answered: what it has applied, or err. ready says that it can become a voter, reason why it
// is to be dropped.
func (c *newcomers) judge(id string, now time.Duration, applied, committed ids.Index, err error) (ready bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.trials[id]
	if t == nil {
		return false, ""
	}
	passed := min(now-t.looked, 2*callBackTimeout)
	t.looked = now
	t.silent, t.stuck = t.silent+passed, t.stuck+passed
	if err == nil {
		t.silent = 0
		t.lastWord = fmt.Sprintf("it has applied entry %d of %d", applied, t.goal)
		if applied > t.applied {
			t.applied, t.stuck = applied, 0
		}
	} else {
		t.lastWord = err.Error()
	}
	ready = err == nil && applied >= t.goal
	if now-t.goalSet >= catchUpTime {
		t.goal, t.goalSet = committed, now
	}
	switch {
	case ready:
	case t.silent > c.patience.silence:
		reason = fmt.Sprintf("it has not answered for %v (%s)", c.patience.silence, t.lastWord)
	case t.stuck > c.patience.progress:
		reason = fmt.Sprintf("it has not caught up any further for %v (%s)", c.patience.progress, t.lastWord)
	}
	return ready, reason
}

// held notes why one that has caught up is no voter yet.
func (c *newcomers) held(id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.trials[id]; t != nil {
		t.lastWord = err.Error()
	}
}

// lastWord is why a newcomer is no voter yet.
func (c *newcomers) lastWord(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.trials[id]; t != nil {
		return t.lastWord
	}
	return ""
}

// keepOnly forgets trials of others, and what is too old to matter.
func (c *newcomers) keepOnly(joining []raft.Server, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.trials {
		if !slices.ContainsFunc(joining, func(s raft.Server) bool { return string(s.ID) == id }) {
			delete(c.trials, id)
		}
	}
	for id, m := range c.missed {
		if now-m.last > refusalTime {
			delete(c.missed, id)
		}
	}
	for id, r := range c.refusals {
		if now-r.at > refusalTime {
			delete(c.refusals, id)
		}
	}
}

func (c *newcomers) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *newcomers) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}
