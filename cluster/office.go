package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// clockInterval is how often the leader compares the voters' clocks when no reader makes it.
const clockInterval = 2 * time.Second

// officeRetry is the pause after a majority of the voters could not be asked, though they voted.
const officeRetry = 100 * time.Millisecond

// govern is what this node does whenever it is elected, until it is closed.
func (n *Node) govern() {
	wonder := time.NewTicker(removalLook)
	defer wonder.Stop()
	for {
		select {
		case <-n.leadership.elected:
			n.takeOffice()
			go n.tendNewcomers(n.leadership.office())
			n.preside(wonder.C)
		case <-wonder.C:
			n.noticeRemoval()
		case <-n.ctx.Done():
			return
		}
	}
}

// preside is what a leader does from time to time, for as long as it leads.
func (n *Node) preside(wonder <-chan time.Time) {
	compare := time.NewTicker(clockInterval)
	defer compare.Stop()
	look := time.NewTicker(sessionLook)
	defer look.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		due.Reset(n.untilDue())
		term := n.leadership.office()
		if term == 0 {
			return
		}
		select {
		case <-compare.C:
			_ = n.probeVoters(term)
			n.clock.keepOnly(n.voterIDs())
		case <-look.C:
			n.endExpired()
		case <-n.fsm.Sooner():
		case <-due.C:
			n.letTimePass()
		case <-wonder:
			n.noticeRemoval()
		case <-n.ctx.Done():
			return
		}
	}
}

// How long a leader waits until it looks for what time has changed.
const (
	minDueLook  = 10 * time.Millisecond  // even if there is more to do
	hostDueLook = 100 * time.Millisecond // while a host is silent that some rule does not wait for without end
	maxDueLook  = time.Second            // even if there is nothing to come: clocks are set
)

// untilDue is for how long there is nothing to do for letTimePass.
func (n *Node) untilDue() (wait time.Duration) {
	now := n.clock.Now()
	n.fsm.View(func(ns *namespace.Namespace) {
		longest := maxDueLook
		if ns.AwaitsHosts() {
			longest = hostDueLook
		}
		next := max(ns.NextDue(), now) // what is due at once has been for longer than a duration can say
		wait = time.Duration(min(next-now, int64(longest)))
	})
	return max(wait, minDueLook)
}

// letTimePass has the state machine mark what time has made stale. Whether it has, the state machine itself
// decides, by the time of the command.
func (n *Node) letTimePass() {
	due := false
	now := n.clock.Now()
	n.fsm.View(func(ns *namespace.Namespace) { due = ns.Due(now) })
	if due {
		n.proposeOwn(&storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}})
	}
}

// takeOffice makes this node ready to lead: it has applied all that was ever acknowledged, and knows
// the clocks of a majority.
func (n *Node) takeOffice() {
	for n.raft.State() == raft.Leader {
		term := n.raft.CurrentTerm()
		err := n.raft.Barrier(0).Error()
		if err == nil {
			err = n.probeVoters(term)
		}
		if err == nil && n.raft.CurrentTerm() == term {
			n.fsm.View(func(ns *namespace.Namespace) { n.clock.start(ns.Time().UnixNano()) })
			n.terms.reset(readClocks().mono)
			n.leadership.ready(term)
			n.logger.Info("leading", "term", term)
			n.recordOwn()
			return
		}
		n.logger.Warn("elected, but not ready to lead yet", "term", term, "error", err)
		select {
		case <-n.leadership.change():
		case <-time.After(officeRetry):
		}
	}
}

// recordOwn makes this node's addresses and limits known.
func (n *Node) recordOwn() {
	n.adminMu.Lock()
	defer n.adminMu.Unlock()
	if !proto.Equal(n.member(n.id.ID), n.self()) {
		n.proposeOwn(setMember(n.self()))
	}
	if limits := n.ownLimits(); !proto.Equal(limits, new(storepb.SetLimits)) {
		n.proposeOwn(&storepb.Op{Op: &storepb.Op_SetLimits{SetLimits: limits}})
	}
}

// ownLimits are those that this node is to set when it leads.
func (n *Node) ownLimits() *storepb.SetLimits {
	limits := &storepb.SetLimits{
		MaxInodes: n.cfg.MaxInodes, MaxInodesPerUser: n.cfg.MaxInodesPerUser,
		MaxBytes: n.cfg.MaxBytes, MaxBytesPerUser: n.cfg.MaxBytesPerUser,
		MaxSessions: n.cfg.MaxSessions, LockDelay: (*int64)(n.cfg.LockDelay),
	}
	n.fsm.View(func(ns *namespace.Namespace) {
		if limits.GetMaxBytes() == 0 && !ns.BytesLimited() {
			limits.MaxBytes = max(memory()/memoryShare, namespace.DefaultMaxBytes)
		}
	})
	return limits
}

func (n *Node) proposeOwn(op *storepb.Op) {
	if _, err := n.proposeCluster(n.ctx, op); err != nil {
		n.logger.Warn("a change of the leader's own was not recorded", "error", err)
	}
}

// proposeCluster proposes an operation that belongs to no session.
func (n *Node) proposeCluster(ctx context.Context, op *storepb.Op) (*storepb.Result, error) {
	return n.store.Propose(ctx, &storepb.Command{Op: op})
}

func setMember(m *storepb.Member) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_SetMember{SetMember: &storepb.SetMember{Member: m}}}
}
