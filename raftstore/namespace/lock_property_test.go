package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/lockhistory"
	"lockfs/raftstore/storepb"
)

// TestLocksStayConsistent gives random commands to a namespace, those that hinder one another included.
func TestLocksStayConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		s := newStory(ns)
		g := newGenerator(t, ns)
		g.locks, g.deep = true, g.often(40)
		steps := uint64(1 + g.below(pick(g, 20, 50, 200)))
		for index := uint64(1); index <= steps; index++ {
			cmd := g.next()
			t.Logf("%d: %v", index, cmd)
			untouched := proto.Clone(cmd)
			ns.Apply(ids.Index(index), cmd)
			requireSame(t, untouched, cmd)
			s.follow(t)
			requireConsistent(t, ns)
		}
		due := ns.Due(ns.time + 1)
		before := ns.Snapshot()
		ns.Apply(ids.Index(steps+1), &storepb.Command{Op: opOf(&storepb.Tick{}), Time: ns.time + 1})
		if !due {
			requireSameLocks(t, &before.state, &ns.state)
		}
		for depth := uint64(0); ns.Due(ns.time); depth++ { // a directory goes after what is in it
			require.Less(t, depth, uint64(10), "all is done that was due")
			ns.Apply(ids.Index(steps+2+depth), &storepb.Command{Op: opOf(&storepb.Tick{}), Time: ns.time})
		}
		s.follow(t)
		requireMakesSense(t, ns)
	})
}

// requireMakesSense judges the events as somebody does who has nothing else.
func requireMakesSense(t require.TestingT, ns *Namespace) {
	for _, c := range (&lockhistory.History{Events: ns.Events(0, keptEvents), Whole: true}).Check() {
		require.Fail(t, c.Why, "%s: %v", c.Path, c.Piece)
	}
}

// requireSameLocks compares what is known of all names.
func requireSameLocks(t require.TestingT, a, b *state) {
	require.Equal(t, a.tree.byName.Len(), b.tree.byName.Len())
	b.tree.byName.Scan(func(e *entry) bool {
		same, found := a.tree.byName.Get(e)
		require.True(t, found && same == e, "%q has changed", e.name)
		return true
	})
	require.Equal(t, a.events.last, b.events.last)
}
