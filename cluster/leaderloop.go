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

// leaderLoop is the goroutine in which a node leads. After an election it gets the node ready, and then
// runs the periodic work of a leader until the next election.
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
	certIssuer       *certIssuer               // nil: no certificates
	limits           func() *storepb.SetLimits // set by this node when it leads
	cluster          func()                    // records the cluster's id and CA in the state
	watchdogDeadline *atomic.Pointer[time.Time]
	recorded         bool     // this node's member record and limits, in this term
	expiredLeaseTerm ids.Term // see Config.ExpiredLeaseTerm
}

// readyRetry is the pause after a failed attempt to confirm the leadership.
const readyRetry = 100 * time.Millisecond

// watchdogTimeout is far more than a round takes while all others are unreachable.
const watchdogTimeout = time.Minute

func (l *leaderLoop) kickWatchdog() { l.watchdogDeadline.Store(new(time.Now().Add(watchdogTimeout))) }

// run leads whenever this node is elected, until it is closed.
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

// lead runs the periodic work of a leader while it leads.
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

// How long a leader waits between two checks for due changes.
const (
	minDueInterval  = 10 * time.Millisecond  // at least, even if more is due
	hostDueInterval = 100 * time.Millisecond // while a host is silent and some rule waits for it
	maxDueInterval  = time.Second            // at most, since clocks may be set
)

// nextDeadline returns how long proposeTick has nothing to do.
func (l *leaderLoop) nextDeadline() (wait time.Duration) {
	now := l.clock.Now()
	l.raft.FSM.View(func(ns *namespace.Namespace) {
		longest := maxDueInterval
		if ns.AwaitsHosts() {
			longest = hostDueInterval
		}
		next := max(ns.NextDue(), now) // the difference to a long past due time would overflow
		wait = time.Duration(min(next-now, int64(longest)))
	})
	return max(wait, minDueInterval)
}

// proposeTick makes the state machine apply time: locks become stale. The time of the command decides,
// not this check.
func (l *leaderLoop) proposeTick() {
	due := false
	now := l.clock.Now()
	l.raft.FSM.View(func(ns *namespace.Namespace) { due = ns.Due(now) })
	if due {
		l.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}})
	}
}

// becomeReady waits until this node has applied everything ever acknowledged, knows the clocks of a
// majority, and no earlier lease lasts.
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

// applyAll waits until this node has applied its whole log. The wait has a limit, because the disk may be
// full.
func (l *leaderLoop) applyAll() error {
	ctx, cancel := context.WithTimeout(l.ctx, changeTimeout)
	defer cancel()
	return l.proposer.confirmConfiguration(ctx)
}

// awaitLeases waits until all leases granted before this election have expired (see termReports). It
// returns false once this node does not lead.
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
	l.logger.Info("waiting for the leases of the previous leader to expire", "term", term, "at most", wait.Round(time.Millisecond))
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

// retryBootstrapRecord records the bootstrap CA if that failed when this node began to lead.
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

// recordTimeout is how long a new leader waits for the mutex of member changes before it records its own
// data: clients may know already that it is ready.
const recordTimeout = time.Second

// recordOwn records this node's member record and limits once in each term: at its start, or as soon as
// no other change is under way.
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

// correctOwnAddress updates this node's address in raft's configuration.
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
