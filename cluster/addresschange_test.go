//go:build !race

// When a server's address changes, hashicorp/raft writes its id anew, the same one, while others read it
// (updateLastAppended of version 1.8 reads without peerLock). That does no harm, but the race detector
// ends these tests for it. test/run runs them without.

package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// TestAddressChangesOfServers starts each with another address, one after the other, then two and then
// all at a time.
func TestAddressChangesOfServers(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	move := func(which ...int) {
		told := nodes[0].raft.VotersNumber()
		for _, i := range which {
			require.NoError(t, nodes[i].Close())
		}
		for _, i := range which {
			cfg := nodes[i].cfg
			cfg.Address, cfg.Join = loopback.Free(t), nil
			nodes[i].cfg = cfg
		}
		var started []*Node
		for _, i := range which {
			cfg := nodes[i].cfg
			if len(which) == len(nodes) { // nobody is where he was: one is told where the others are
				cfg.Join = []string{nodes[(i+1)%3].cfg.Address, nodes[(i+2)%3].cfg.Address}
			}
			nodes[i] = reopen(t, cfg)
			started = append(started, nodes[i])
		}
		awaitReady(t, started...)
		requireAddresses(t, nodes...)
		for _, node := range nodes {
			require.NotEqual(t, told, node.raft.VotersNumber(), "mounts are to ask where the voters are")
		}
	}
	for i := range nodes {
		move(i)
	}
	move(0, 1)
	move(0, 1, 2)
	require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, nodes[0], ""), "lock"))
}

// TestServerFindsALeaderWhoseAddressChangedToo has a server start elsewhere that knows no address at
// which the leader is now: it hears of it from a server that does not lead.
func TestServerFindsALeaderWhoseAddressChangedToo(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	a, b, c := nodes[0], nodes[1], nodes[2]
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	elsewhere := func(n *Node) *Node {
		cfg := n.cfg
		cfg.Address, cfg.Join = loopback.Free(t), nil
		return reopen(t, cfg)
	}
	a = elsewhere(a)
	awaitReady(t, a)
	requireAddresses(t, a, c)
	require.Eventually(t, func() bool {
		if leaderOf(t, []*Node{a, c}) == c {
			_ = c.raft.LeadershipTransferToServer(raft.ServerID(a.dir.ID), raft.ServerAddress(a.cfg.Address)).Error()
		}
		return a.leadership.leads()
	}, testWait, 10*time.Millisecond)
	b = elsewhere(b)
	require.Contains(t, b.probeAddresses(t.Context()), a.cfg.Address, "known to the third server only")
	awaitReady(t, b)
	requireAddresses(t, a, b, c)
}

// TestLeaderLearnsOfAnAddressChangeFromAnotherServer has a follower know where a server is that the
// leader does not find.
func TestLeaderLearnsOfAnAddressChangeFromAnotherServer(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := followersOf(t, nodes)
	moved, follower := others[0], others[1]
	known := *leader.raft.Server(moved.dir.ID)
	require.NoError(t, moved.Close())
	cfg := moved.cfg
	cfg.Address, cfg.Join = loopback.Free(t), nil
	moved = reopen(t, cfg) // and is not ready yet, so it has told no server of its address
	follower.members.learnedAddresses.Learn(known, raft.ServerAddress(cfg.Address))
	leader.learnAddresses(leader.probeAddresses(t.Context()))
	require.Equal(t, cfg.Address, leader.members.address(moved.dir.ID))
}

func TestAddressChangeOfASingleServer(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	require.NoError(t, node.Close())
	cfg := node.cfg
	cfg.Address = loopback.Free(t)
	node = reopen(t, cfg)
	awaitReady(t, node)
	requireAddresses(t, node)
}

// TestServersThatExchangeAddresses has two, and then all three, start with each other's addresses.
func TestServersThatExchangeAddresses(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, int) []*Node{
		"insecure": startNodes,
		"secure":   func(t testing.TB, n int) []*Node { return startSecureNodes(t, n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := start(t, 3)
			rotate := func(which ...*Node) {
				var addresses []string
				for _, node := range which {
					require.NoError(t, node.Close())
					addresses = append(addresses, node.cfg.Address)
				}
				var started []*Node
				for i, node := range which {
					cfg := node.cfg
					cfg.Address, cfg.Join = addresses[(i+1)%len(addresses)], nil
					at := slices.Index(nodes, node)
					nodes[at] = reopen(t, cfg)
					started = append(started, nodes[at])
				}
				awaitReady(t, started...)
				requireAddresses(t, nodes...)
			}
			leader := leaderOf(t, nodes)
			others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
			rotate(others...)
			rotate(leaderOf(t, nodes), followersOf(t, nodes)[0])
			rotate(slices.Clone(nodes)...)
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			client, err := nodes[0].OpenClient(ctx, session.Config{Host: nodes[0].cfg.Name, Logger: quietLogger()})
			require.NoError(t, err)
			require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
			require.NoError(t, client.Close(ctx))
		})
	}
}

// TestAddressChangeToATakenAddress has a member say to be where another one was that has stopped.
func TestAddressChangeToATakenAddress(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := followersOf(t, nodes)
	for _, node := range others {
		require.NotNil(t, leader.raft.Server(node.dir.ID))
	}
	taken := others[0].cfg.Address
	member := others[1].members.own()
	member.Address = taken
	reply := leader.joiner.join(t.Context(), member, true)
	require.Equal(t, clusterpb.Outcome_NOT_DONE, reply.GetOutcome(), "somebody else answers there")
	require.ErrorContains(t, leader.addressBook.commit(t.Context(), others[1].dir.ID, others[0].raft.Transport.LocalAddr()), "is still that of the member")
	requireAddresses(t, nodes...)

	// It comes back where another one is that has stopped: that one has to be started elsewhere first.
	require.NoError(t, others[0].Close())
	require.NoError(t, others[1].Close())
	cfg := others[1].cfg
	cfg.Address = taken
	moved := reopen(t, cfg)
	require.Eventually(t, func() bool {
		return leader.joiner.join(t.Context(), moved.members.own(), true).GetOutcome() == clusterpb.Outcome_NOT_DONE
	}, testWait, 10*time.Millisecond)
	cfg = others[0].cfg
	cfg.Address = loopback.Free(t)
	back := reopen(t, cfg)
	awaitReady(t, moved, back)
	requireAddresses(t, leader, moved, back)
}

// TestAddressChangeThatWasNotCommitted has a leader take it away and write down no other, as one that is
// cut off between the two.
func TestAddressChangeThatWasNotCommitted(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	server := *leader.raft.Server(followersOf(t, nodes)[0].dir.ID)
	server.Address = placeholderAddress(server.ID)
	require.True(t, leader.proposer.exclusive.Lock(t.Context()))
	require.NoError(t, leader.addressBook.setAddress(t.Context(), server))
	leader.proposer.exclusive.Unlock()
	requireAddresses(t, nodes...)
}
