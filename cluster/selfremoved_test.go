package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/storepb"
)

// believes tells whether a node takes itself for removed, as another one says.
func believes(node, of *Node) bool {
	removed, _ := node.removal.removedAccordingTo(of.cfg.Address)
	return removed
}

// TestAnUncommittedRemovalIsNotBelieved has a leader remove a node when it hears nobody any more. It
// believes itself for a while.
func TestAnUncommittedRemovalIsNotBelieved(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	node := others[0]
	require.False(t, believes(node, leader), "a leader with a majority")
	for _, gone := range others {
		gone.raft.Shutdown()
	}
	leader.raft.RemoveServer(raft.ServerID(node.dir.ID), 0, 0)
	require.Eventually(t, func() bool { return !slices.Contains(leader.raft.VoterIDs(), node.dir.ID) }, testWait, time.Millisecond)
	require.False(t, believes(node, leader))
	require.False(t, believes(node, others[1]), "nor that of one that does not lead")
}

func TestACommittedRemovalIsBelieved(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, consensus.Await(ctx, leader.raft.RemoveServer(raft.ServerID(others[0].dir.ID), 0, 0)))
	require.Eventually(t, func() bool { return believes(others[0], leader) }, testWait, time.Millisecond)
	require.False(t, believes(others[1], leader))
	require.False(t, believes(others[0], leaderOf(t, startNodes(t, 1))), "the leader of another cluster")
}

// TestANodeThatWasRemovedMeanwhileSaysSo starts one again, the one that began the cluster, that waits for
// a leader in vain.
func TestANodeThatWasRemovedMeanwhileSaysSo(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, int) []*Node{
		"insecure": startNodes,
		"secure":   func(t testing.TB, n int) []*Node { return startSecureNodes(t, n) },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := start(t, 3)
			cfg := nodes[0].cfg
			require.NoError(t, nodes[0].Close())
			leader := leaderOf(t, nodes[1:])
			require.Equal(t, storepb.Code_OK, leader.remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: cfg.Name}).GetResult().GetCode())
			cfg.Metrics = nil
			node, err := Open(cfg)
			require.NoError(t, err)
			defer func() { _ = node.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			require.ErrorContains(t, node.WaitReady(ctx), errRemoved.Error()) // as it finds out, or as the leader says for a while
		})
	}
}
