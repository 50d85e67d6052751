package namespace

import (
	"lockfs/raftstore/advisory"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

// tables is the whole state. Each of them is a thing of its own; what they mean together is for a [judge] to say.
type tables struct {
	clock
	version  uint32 // at which the cluster runs
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

// clock is the last command applied.
type clock struct {
	index ids.Index
	time  int64 // cluster time of that command; never goes back
}

func emptyTables(d *digest.Digest) tables {
	return tables{
		version: firstVersion, tree: newTree(d), sessions: newSessions(d), hosts: newHosts(d), rules: newRules(d), events: newEvents(d),
		members: digest.NewMap(d, memberValue), locks: advisory.New(d), trust: trust.New(d),
		alarms: newAlarms(d), digest: d,
	}
}

// frozen is a copy in constant time, without what is worked out from the rest when it is restored.
func (ts *tables) frozen() tables {
	return tables{
		clock: ts.clock, version: ts.version, tree: ts.tree.frozen(), sessions: ts.sessions.frozen(), hosts: hosts{ts.hosts.byName.Copy()},
		rules: rules{byPattern: ts.rules.byPattern.Copy()}, events: ts.events.frozen(), members: ts.members.Copy(), locks: ts.locks.Frozen(),
		alarms: alarms{ts.alarms.byNumber.Copy()}, leases: ts.leases, budgets: ts.budgets,
		trust: ts.trust.Frozen(),
	}
}
