package namespace

import (
	"lockfs/raftstore/advisory"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

// state are the whole state. Each is independent; an [evaluator] evaluates them together.
type state struct {
	clock
	version  uint32 // of the cluster
	tree     tree
	sessions sessions
	hosts    hosts
	rules    rules
	events   events
	members  *digest.Map[string, *storepb.Member] // by id
	locks    *advisory.Table
	alarms   alarms
	trust    *trust.Table
	budgets  budgets
	leases   bool           // see MayLease
	digest   *digest.Digest // of all these; nil: of a copy
}

// clock is the last applied command.
type clock struct {
	index ids.Index
	time  int64 // cluster time of that command; never goes back
}

func emptyState(d *digest.Digest) state {
	return state{
		version: firstVersion, tree: newTree(d), sessions: newSessions(d), hosts: newHosts(d), rules: newRules(d), events: newEvents(d),
		members: digest.NewMap(d, memberValue), locks: advisory.New(d), trust: trust.New(d),
		alarms: newAlarms(d), digest: d,
	}
}

// frozen returns a copy in constant time, without derived fields.
func (ts *state) frozen() state {
	return state{
		clock: ts.clock, version: ts.version, tree: ts.tree.frozen(), sessions: ts.sessions.frozen(), hosts: hosts{ts.hosts.byName.Copy()},
		rules: rules{byPattern: ts.rules.byPattern.Copy()}, events: ts.events.frozen(), members: ts.members.Copy(), locks: ts.locks.Frozen(),
		alarms: alarms{ts.alarms.byNumber.Copy()}, leases: ts.leases, budgets: ts.budgets,
		trust: ts.trust.Frozen(),
	}
}
