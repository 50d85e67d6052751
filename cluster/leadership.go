package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus"
	"lockfs/raftstore/ids"
)

// leadership follows raft's leader. This node leads for its callers only once it is ready: raft may elect
// it long before it knows everything its predecessor acknowledged.
type leadership struct {
	raft     *raft.Raft
	self     raft.ServerID
	stepDown *consensus.StepDown
	notify   chan bool             // raft's NotifyCh
	observed chan raft.Observation // LeaderObservation
	elected  chan struct{}         // wakes the leader loop; capacity 1
	members  *members
	hint     *leaderHint

	readyTerm atomic.Uint64 // term in which this node became ready; 0: never
	named     atomic.Uint32 // counts the calls of anotherVoter

	mu      sync.Mutex
	changed chan struct{} // closed at each change
}

func newLeadership(self raft.ServerID, silence *consensus.StepDown) *leadership {
	return &leadership{
		self:     self,
		stepDown: silence,
		notify:   make(chan bool, 1),
		observed: make(chan raft.Observation, 16),
		elected:  make(chan struct{}, 1),
		changed:  make(chan struct{}),
	}
}

// follow drains raft's notifications until stop is closed. It never proposes and never blocks, because
// raft's main loop waits for the reader of NotifyCh.
func (l *leadership) follow(r *raft.Raft, m *members, stop <-chan struct{}) {
	l.raft, l.members = r, m
	observer := raft.NewObserver(l.observed, false, func(o *raft.Observation) bool {
		_, isLeader := o.Data.(raft.LeaderObservation)
		return isLeader
	})
	r.RegisterObserver(observer)
	go func() {
		defer r.DeregisterObserver(observer)
		for {
			select {
			case leads := <-l.notify:
				if leads {
					select {
					case l.elected <- struct{}{}:
					default:
					}
				}
			case <-l.observed:
			case <-stop:
				return
			}
			l.wake()
		}
	}()
}

func (l *leadership) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leadership) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// term returns the term in which this node leads and is ready, or 0.
func (l *leadership) term() ids.Term {
	term := ids.Term(l.readyTerm.Load())
	if term != 0 && l.raft.State() == raft.Leader && ids.Term(l.raft.CurrentTerm()) == term && !l.stepDown.Begun() {
		return term
	}
	return 0
}

// leads reports whether this node answers as the leader now; await would not wait.
func (l *leadership) leads() bool { return l.term() != 0 && !l.members.raft.IsFull() }

func (l *leadership) setReady(term ids.Term) {
	l.readyTerm.Store(uint64(term))
	l.wake()
}

// leaderWait is how long a request waits on a node without a known leader.
const leaderWait = time.Second

// await returns the term if this node leads and is ready. Otherwise it returns the address of the leader,
// or of a server that may know it.
func (l *leadership) await(ctx context.Context) (term ids.Term, leader string) {
	// While this node's disk is full, raft waits for it, so this node does not learn about elections. The
	// mount on its host relies on this answer.
	if l.members.raft.IsFull() {
		if other := l.anotherVoter(); other != "" {
			return 0, other
		}
	}
	if term := l.term(); term != 0 {
		return term, ""
	}
	waiting, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	for {
		changed := l.change()
		if term := l.term(); term != 0 {
			return term, ""
		}
		if id, address := l.members.leader(); id != "" && id != string(l.self) {
			return 0, address
		}
		if l.members.isOut() { // the leader sends it no more messages
			if other := l.anotherVoter(); other != "" {
				return 0, other
			}
		}
		if known := l.hint.last(); known != "" {
			return 0, known
		}
		select {
		case <-changed:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return 0, ""
			}
			return 0, l.hint.find()
		}
	}
}

// anotherVoter returns the address of another voter, in rotation; "": there is none.
func (l *leadership) anotherVoter() string {
	var others []string
	for _, voter := range l.members.voters() {
		if voter.GetId() != string(l.self) && voter.GetAddress() != "" {
			others = append(others, voter.GetAddress())
		}
	}
	if len(others) == 0 {
		return ""
	}
	return others[l.named.Add(1)%uint32(len(others))]
}
