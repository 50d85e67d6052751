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
	ctx              context.Context // ends when the node is closed
	raft             *consensus.Raft
	members          *members
	leadership       *leadership
	readIndex        *readIndex
	leaseGate        *leaseGate
	space            *diskSpace
	clock            *clock
	proposer         *proposer
	sessions         *sessions
	joiner           *joiner
	addressBook      *addressBook
	failureDetector  *failureDetector
	removal          *removalWatch
	logger           *slog.Logger
	certIssuer       *certIssuer               // nil: there are no certificates
	limits           func() *storepb.SetLimits // that this node is to set when it leads
	cluster          func()                    // has the state know which cluster it is
	watchdogDeadline *atomic.Pointer[time.Time]
	recorded         bool     // what this node has to say, since it leads
	expiredLeaseTerm ids.Term // see Config.ExpiredLeaseTerm
}

// readyRetry is the pause after a majority of the voters could not be asked, though they voted.
const readyRetry = 100 * time.Millisecond

// watchdogTimeout is far more than a round takes in which all others are silent.
const watchdogTimeout = time.Minute

func (l *leaderLoop) kickWatchdog() { l.watchdogDeadline.Store(new(time.Now().Add(watchdogTimeout))) }

// run is what this node does whenever it is elected, until it is closed.
func (l *leaderLoop) run() {
	removed := time.NewTicker(removalCheckInterval)
	defer removed.Stop()
	for {
		l.kickWatchdog()
		select {
		case <-l.leadership.elected:
			l.becomeReady()
			go l.joiner.reconcile(l.leadership.term())
			go l.failureDetector.run(l.leadership.term())
			go l.sessions.deadlines.watch(l.ctx, l.stillLeads(l.leadership.term()))
			l.lead(removed.C)
		case <-removed.C:
			l.removal.check()
		case <-l.ctx.Done():
			return
		}
	}
}

// stillLeads returns a function that reports whether this node still leads in a term.
func (l *leaderLoop) stillLeads(term ids.Term) func() bool {
	return func() bool { return term != 0 && l.leadership.term() == term }
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
		l.kickWatchdog()
		due.Reset(l.nextDeadline())
		term := l.leadership.term()
		if term == 0 {
			l.leaseGate.end()
			return
		}
		select {
		case <-compare.C:
			_, _ = l.readIndex.probeVoters(term)
			l.clock.keepOnly(l.raft.VoterIDs())
			l.space.updateAlarms()
			l.recordOwn(0)
			l.correctOwnAddress()
			if l.certIssuer != nil {
				l.certIssuer.dropObsoleteCAs()
				l.certIssuer.shareSealKey()
				l.retryBootstrapRecord()
			}
		case <-expire.C:
			l.sessions.endExpired()
			if l.certIssuer != nil {
				l.sessions.endRevoked()
			}
		case <-l.raft.FSM.Sooner():
		case <-due.C:
			l.proposeTick()
		case <-removed:
			l.removal.check()
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

// nextDeadline is for how long there is nothing to do for proposeTick.
func (l *leaderLoop) nextDeadline() (wait time.Duration) {
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

// proposeTick has the state machine mark what time has made stale. Whether it has, the state machine itself
// decides, by the time of the command.
func (l *leaderLoop) proposeTick() {
	due := false
	now := l.clock.Now()
	l.raft.FSM.View(func(ns *namespace.Namespace) { due = ns.Due(now) })
	if due {
		l.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}})
	}
}

// becomeReady makes this node ready to lead: it has applied all that was ever acknowledged, and knows
// the clocks of a majority.
func (l *leaderLoop) becomeReady() {
	for l.raft.State() == raft.Leader && l.ctx.Err() == nil {
		l.kickWatchdog()
		term := ids.Term(l.raft.CurrentTerm())
		elected := readClocks().mono // or before
		var silent time.Duration
		err := l.applyAll()
		if err == nil {
			silent, err = l.readIndex.probeVoters(term)
		}
		if err == nil && ids.Term(l.raft.CurrentTerm()) == term {
			l.raft.FSM.View(func(ns *namespace.Namespace) { l.clock.start(ns.Time().UnixNano()) })
			if !l.awaitLeases(term, elected, silent) {
				continue
			}
			l.sessions.deadlines.reset(readClocks().mono)
			l.leaseGate.start(term)
			l.leadership.setReady(term)
			l.logger.Info("leading", "term", term)
			l.recorded = false
			l.recordOwn(recordTimeout)
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

// applyAll waits until this node has applied all that was in its log when it was called, but not for ever: its disk may be full.
func (l *leaderLoop) applyAll() error {
	ctx, cancel := context.WithTimeout(l.ctx, changeTimeout)
	defer cancel()
	return l.proposer.confirmConfiguration(ctx)
}

// awaitLeases waits until all leases are over that somebody was given before this node was elected (see words). It answers false if this
// node does not lead any more.
func (l *leaderLoop) awaitLeases(term ids.Term, elected, silent time.Duration) bool {
	mayLease := false
	l.raft.FSM.View(func(ns *namespace.Namespace) { mayLease = ns.MayLease() })
	if !mayLease {
		return true
	}
	before := term - 1
	if before != 0 && before == l.expiredLeaseTerm {
		return true
	}
	until := l.readIndex.termReports.leaseExpiry(elected, silent)
	if lasts, resigned := l.leaseGate.stop(before); resigned {
		until = min(until, monotonic()+lasts)
	}
	wait := until - monotonic()
	if wait <= 0 {
		return true
	}
	l.logger.Info("waiting until what others have leased is over", "term", term, "at most", wait.Round(time.Millisecond))
	asking, cancel := context.WithTimeout(l.ctx, wait)
	defer cancel()
	resigned := l.readIndex.stopPredecessorLeases(asking, term)
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changed := l.leadership.change()
		if l.raft.State() != raft.Leader || ids.Term(l.raft.CurrentTerm()) != term {
			return false
		}
		select {
		case <-over.C:
			return true
		case lasts := <-resigned:
			until = min(until, monotonic()+lasts)
			over.Reset(until - monotonic())
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}

// retryBootstrapRecord is for what the cluster begins with if it could not be recorded when this node began to lead.
func (l *leaderLoop) retryBootstrapRecord() {
	if l.certIssuer.bootstrapCA.Load() == nil {
		return
	}
	if !l.proposer.exclusive.TryLock() {
		return
	}
	defer l.proposer.exclusive.Unlock()
	l.cluster()
}

// recordTimeout is for how long a node that has begun to lead waits for its turn to record what a cluster begins with: somebody may be told
// already that it is ready.
const recordTimeout = time.Second

// recordOwn makes this node's addresses and limits known, once in each term: at its beginning, or as soon as nobody else has his turn,
// for which it waits so long, and it can be recorded.
func (l *leaderLoop) recordOwn(patience time.Duration) {
	if l.recorded {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	if !l.proposer.exclusive.TryLock() && !l.proposer.exclusive.Lock(ctx) {
		return
	}
	defer l.proposer.exclusive.Unlock()
	l.cluster()
	own := l.members.own()
	if !proto.Equal(l.members.get(own.GetId()), own) && !l.proposer.proposeOwn(setMember(own)) {
		return
	}
	limits := l.limits()
	l.recorded = proto.Equal(limits, new(storepb.SetLimits)) ||
		l.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_SetLimits{SetLimits: limits}})
}

// correctOwnAddress has raft's configuration follow this node to another address.
func (l *leaderLoop) correctOwnAddress() {
	id, address := l.members.dir.ID, raft.ServerAddress(l.members.dir.Address)
	if known := l.raft.Server(id); address == "" || known == nil || known.Address == address {
		return
	}
	if !l.proposer.exclusive.TryLock() {
		return
	}
	defer l.proposer.exclusive.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, changeTimeout)
	defer cancel()
	if err := l.addressBook.commit(ctx, id, address); err != nil {
		l.logger.Warn("this node's new address is not written down yet", "address", address, "error", err)
	}
}
