package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestARemovalIsFinishedByTheNextLeader has the leader be gone when it has taken a member out of raft's configuration. One that was only
// joining when its leader was gone keeps its certificate.
func TestARemovalIsFinishedByTheNextLeader(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 4)
	leader := leaderOf(t, nodes)
	others := followersOf(t, nodes)
	gone, others := others[0], others[1:]
	newcomer := secureConfig(t, "n4")
	enrollNode(t, leader, newcomer)
	joining := &storepb.Member{Id: "n4-1", Name: "n4", Address: newcomer.Address}
	leaving := gone.members.own()
	leaving.Leaving = true
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.True(t, leader.changes.turn.take(ctx))
	for _, member := range []*storepb.Member{joining, leaving} {
		result, err := leader.changes.propose(ctx, setMember(member))
		require.NoError(t, err)
		requireDone(t, result)
	}
	require.NoError(t, leader.expulsion.takeOut(ctx, gone.dir.ID, "it is taken out"))
	require.NoError(t, leader.Close())
	leader.changes.turn.pass()
	for _, node := range others {
		require.NoError(t, node.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool {
			return ns.Member(gone.dir.ID) == nil && ns.Member(joining.GetId()) == nil
		}))
		node.fsm.View(func(ns *namespace.Namespace) {
			require.NotZero(t, ns.Admission(gone.dir.Name).GetRevoked())
			require.Zero(t, ns.Admission("n4").GetRevoked())
		})
	}
}
