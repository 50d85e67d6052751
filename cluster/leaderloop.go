package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/consensus"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// leaderLoop is the one goroutine in which a node leads: it becomes ready when it is elected, and then does from time to time
// what only a leader does, until another one leads.
type leaderLoop struct {
	ctx        context.Context // ends when the node is closed
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	readIndex  *readIndex
	space      *diskSpace
	clock      *clock
	changes    *changes
	sessions   *sessions
	admission  *admission
	moves      *moves
	vigil      *vigil
	removal    *removalWatch
	logger     *slog.Logger
	enrollment *enrollment               // nil: there are no certificates
	limits     func() *storepb.SetLimits // that this node is to set when it leads
	cluster    func()                    // has the state know which cluster it is
	roundDue   *atomic.Pointer[time.Time]
}

// readyRetry is the pause after a majority of the voters could not be asked, though they voted.
const readyRetry = 100 * time.Millisecond

// longestRound is far more than a round takes in which all others are silent.
const longestRound = time.Minute

func (l *leaderLoop) goesRound() { l.roundDue.Store(new(time.Now().Add(longestRound))) }

// run is what this node does whenever it is elected, until it is closed.
func (l *leaderLoop) run() {
	removed := time.NewTicker(removalInterval)
	defer removed.Stop()
	for {
		l.goesRound()
		select {
		case <-l.leadership.elected:
			l.becomeReady()
			go l.admission.tend(l.leadership.term())
			go l.vigil.keep(l.leadership.term())
			l.lead(removed.C)
		case <-removed.C:
			l.removal.look()
		case <-l.ctx.Done():
			return
		}
	}
}

// lead is what a leader does from time to time, for as long as it leads.
func (l *leaderLoop) lead(removed <-chan time.Time) {
	compare := time.NewTicker(clockInterval)
	defer compare.Stop()
	expire := time.NewTicker(sessionInterval)
	defer expire.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		l.goesRound()
		due.Reset(l.untilDue())
		term := l.leadership.term()
		if term == 0 {
			return
		}
		select {
		case <-compare.C:
			_ = l.readIndex.probeVoters(term)
			l.clock.keepOnly(l.raft.VoterIDs())
			l.space.look()
			l.correctOwnAddress()
			if l.enrollment != nil {
				l.enrollment.dropUnneeded()
				l.recordFounding()
			}
		case <-expire.C:
			l.sessions.endExpired()
			if l.enrollment != nil {
				l.sessions.endRevoked()
			}
		case <-l.raft.FSM.Sooner():
		case <-due.C:
			l.letTimePass()
		case <-removed:
			l.removal.look()
		case <-l.ctx.Done():
			return
		}
	}
}

// How long a leader waits until it looks for what time has changed.
const (
	minDueInterval  = 10 * time.Millisecond  // even if there is more to do
	hostDueInterval = 100 * time.Millisecond // while a host is silent that some rule does not wait for without end
	maxDueInterval  = time.Second            // even if there is nothing to come: clocks are set
)

// untilDue is for how long there is nothing to do for letTimePass.
func (l *leaderLoop) untilDue() (wait time.Duration) {
	now := l.clock.Now()
	l.raft.FSM.View(func(ns *namespace.Namespace) {
		longest := maxDueInterval
		if ns.AwaitsHosts() {
			longest = hostDueInterval
		}
		next := max(ns.NextDue(), now) // what is due at once has been for longer than a duration can say
		wait = time.Duration(min(next-now, int64(longest)))
	})
	return max(wait, minDueInterval)
}

// letTimePass has the state machine mark what time has made stale. Whether it has, the state machine itself
// decides, by the time of the command.
func (l *leaderLoop) letTimePass() {
	due := false
	now := l.clock.Now()
	l.raft.FSM.View(func(ns *namespace.Namespace) { due = ns.Due(now) })
	if due {
		l.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}})
	}
}

// becomeReady makes this node ready to lead: it has applied all that was ever acknowledged, and knows
// the clocks of a majority.
func (l *leaderLoop) becomeReady() {
	for l.raft.State() == raft.Leader {
		l.goesRound()
		term := ids.Term(l.raft.CurrentTerm())
		err := l.raft.Barrier(0).Error()
		if err == nil {
			err = l.readIndex.probeVoters(term)
		}
		if err == nil && ids.Term(l.raft.CurrentTerm()) == term {
			l.raft.FSM.View(func(ns *namespace.Namespace) { l.clock.start(ns.Time().UnixNano()) })
			l.sessions.leases.reset(readClocks().mono)
			l.leadership.ready(term)
			l.logger.Info("leading", "term", term)
			l.recordOwn()
			l.correctOwnAddress()
			return
		}
		l.logger.Warn("elected, but not ready to lead yet", "term", term, "error", err)
		select {
		case <-l.leadership.change():
		case <-time.After(readyRetry):
		}
	}
}

// recordFounding is for what the cluster begins with if it could not be recorded when this node began to lead.
func (l *leaderLoop) recordFounding() {
	if l.enrollment.founding.Load() == nil {
		return
	}
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	l.cluster()
}

// recordOwn makes this node's addresses and limits known.
func (l *leaderLoop) recordOwn() {
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	l.cluster()
	if !proto.Equal(l.members.get(l.members.dir.ID), l.members.own()) {
		l.changes.proposeOwn(setMember(l.members.own()))
	}
	if limits := l.limits(); !proto.Equal(limits, new(storepb.SetLimits)) {
		l.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_SetLimits{SetLimits: limits}})
	}
}

// correctOwnAddress has raft's configuration follow this node to another address.
func (l *leaderLoop) correctOwnAddress() {
	id, address := l.members.dir.ID, raft.ServerAddress(l.members.dir.Address)
	if known := l.raft.Server(id); address == "" || known == nil || known.Address == address {
		return
	}
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	if err := l.moves.writeDown(l.ctx, id, address); err != nil {
		l.logger.Warn("this node's new address is not written down yet", "address", address, "error", err)
	}
}
