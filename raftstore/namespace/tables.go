package namespace

import (
	"github.com/tidwall/btree"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

// tables is the whole state. Each of them is a thing of its own; what they mean together is for a [judge] to say.
type tables struct {
	clock
	tree     tree
	sessions sessions
	hosts    hosts
	rules    rules
	events   events
	members  *btree.Map[string, *storepb.Member] // by id
	locks    *advisory.Table
	trust    *trust.Table
}

// clock is the last command applied.
type clock struct {
	index ids.Index
	time  int64 // cluster time of that command; never goes back
}

func emptyTables() tables {
	return tables{
		tree: newTree(), sessions: newSessions(), hosts: newHosts(), rules: newRules(), events: newEvents(),
		members: new(btree.Map[string, *storepb.Member]), locks: advisory.New(), trust: trust.New(),
	}
}

// frozen is a copy in constant time, without what is worked out from the rest when it is restored.
func (ts *tables) frozen() tables {
	return tables{
		clock: ts.clock, tree: ts.tree.frozen(), sessions: ts.sessions.frozen(), hosts: hosts{ts.hosts.byName.Copy()},
		rules: rules{ts.rules.byPattern.Copy()}, events: ts.events.frozen(), members: ts.members.Copy(), locks: ts.locks.Frozen(),
		trust: ts.trust.Frozen(),
	}
}
