package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/test/loopback"
)

// TestANodeTellsOfEachLeader has the leader go. Of the others each tells of the same one after it: that
// one of itself, and the other one by its address.
func TestANodeTellsOfEachLeader(t *testing.T) {
	nodes := startNodes(t, 3)
	others := nodes[1:]
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	var told [2]atomic.Pointer[string]
	for i, node := range others {
		following.Go(func() {
			node.FollowLeader(ctx, func(address string) { told[i].Store(&address) })
		})
	}
	tells := func(i int, address string) bool {
		last := told[i].Load()
		return last != nil && *last == address
	}
	first := nodes[0].cfg.Address
	require.Eventually(t, func() bool { return tells(0, first) && tells(1, first) }, testWait, time.Millisecond)
	require.NoError(t, nodes[0].Close())
	require.Eventually(t, func() bool {
		return tells(0, "") && tells(1, others[0].cfg.Address) || tells(1, "") && tells(0, others[1].cfg.Address)
	}, testWait, time.Millisecond)
}

// TestALeaderIsWhereItSaysItIs has a follower have met it elsewhere, before it came back to where the
// configuration has it.
func TestALeaderIsWhereItSaysItIs(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	leader := leaderOf(t, nodes)
	follower := followersOf(t, nodes)[0]
	follower.members.learnedAddresses.Learn(*follower.raft.Server(leader.dir.ID), raft.ServerAddress(loopback.Free(t)))
	require.Eventually(t, func() bool {
		_, address := follower.leadership.await(t.Context())
		return address == leader.cfg.Address
	}, testWait, 10*time.Millisecond)
	status := ask(t, follower, rpc.Node.Status, new(clusterpb.StatusRequest))
	require.Equal(t, leader.cfg.Address, status.GetLeaderAddress())
}
