package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestAnUncommittedRemovalIsNotBelieved has a leader remove a node when it hears nobody any more. It believes itself for a while.
func TestAnUncommittedRemovalIsNotBelieved(t *testing.T) {
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	node := others[0]
	require.False(t, node.removedAsSays(leader.self()), "a leader with a majority")
	for _, gone := range others {
		gone.raft.Shutdown()
	}
	leader.raft.RemoveServer(raft.ServerID(node.id.ID), 0, 0)
	require.Eventually(t, func() bool { return !slices.Contains(leader.voterIDs(), node.id.ID) }, testWait, time.Millisecond)
	require.False(t, node.removedAsSays(leader.self()))
	require.False(t, node.removedAsSays(others[1].self()), "nor that of one that does not lead")
}

func TestACommittedRemovalIsBelieved(t *testing.T) {
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, waitConfigChange(ctx, leader.raft.RemoveServer(raft.ServerID(others[0].id.ID), 0, 0)))
	require.Eventually(t, func() bool { return others[0].removedAsSays(leader.self()) }, testWait, time.Millisecond)
	require.False(t, others[1].removedAsSays(leader.self()))
}
