package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestARemovalIsFinishedByTheNextLeader has the leader be gone when it has taken a member out of raft's
// configuration. One that was only joining when its leader was gone keeps its certificate.
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
	require.True(t, leader.proposer.exclusive.Lock(ctx))
	for _, member := range []*storepb.Member{joining, leaving} {
		result, err := leader.proposer.propose(ctx, setMember(member))
		require.NoError(t, err)
		requireDone(t, result)
	}
	require.NoError(t, leader.remover.removeFromConfig(ctx, gone.dir.ID, "it is taken out"))
	require.NoError(t, leader.Close())
	leader.proposer.exclusive.Unlock()
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

// TestAMemberIsRevokedWhenItsMountHasEnded takes out one that follows, and one that leads, while a mount
// is there that last said so as long ago as it may when all is well; the next leader knows of no word of
// it.
func TestAMemberIsRevokedWhenItsMountHasEnded(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprint("leads: ", leads), func(t *testing.T) {
			t.Parallel()
			nodes := startSecureNodes(t, 3, func(cfg *Config) { cfg.SessionTTL = time.Minute })
			for _, node := range nodes {
				node.remover.drainTimeout = testWait
			}
			leader := leaderOf(t, nodes)
			gone := nodes[slices.IndexFunc(nodes, func(n *Node) bool { return (n == leader) == leads })]
			others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == gone })
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			client, err := gone.OpenClient(ctx, session.Config{Host: gone.dir.Name, OpTimeout: testWait, Logger: quietLogger()})
			require.NoError(t, err)

			removed := make(chan error, 1)
			go func() {
				_, err := rpc.Ask(ctx, rpc.NewRouter(others[0].peers, others[0], others[1]), rpc.Node.Remove, &clusterpb.RemoveRequest{Name: gone.dir.Name})
				removed <- err
			}()
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(others, func(n *Node) bool {
					require.True(t, n.proposer.exclusive.Lock(ctx))
					defer n.proposer.exclusive.Unlock()
					_, settles := n.remover.draining[gone.dir.ID]
					return settles
				})
			}, testWait, time.Millisecond)
			require.Empty(t, removed)
			require.NoError(t, client.Close(ctx))
			require.NoError(t, <-removed)
			require.NoError(t, others[0].fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return ns.Admission(gone.dir.Name).GetRevoked() != 0 }))
		})
	}
}
