package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// TestServersMayMove starts each with another address, one after the other, then two and then all at a time.
func TestServersMayMove(t *testing.T) {
	nodes := startNodes(t, 3)
	move := func(which ...int) {
		for _, i := range which {
			require.NoError(t, nodes[i].Close())
		}
		for _, i := range which {
			cfg := nodes[i].cfg
			cfg.Address, cfg.Join = freeAddress(t), nil
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
	}
	for i := range nodes {
		move(i)
	}
	move(0, 1)
	move(0, 1, 2)
	require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, nodes[0], ""), "lock"))
}

func TestASingleServerMayMove(t *testing.T) {
	node := startNodes(t, 1)[0]
	require.NoError(t, node.Close())
	cfg := node.cfg
	cfg.Address = freeAddress(t)
	node = reopen(t, cfg)
	awaitReady(t, node)
	requireAddresses(t, node)
}

// TestServersMayChangePlaces has two, and then all three, start with each other's addresses.
func TestServersMayChangePlaces(t *testing.T) {
	for name, start := range map[string]func(testing.TB, int) []*Node{
		"insecure": startNodes,
		"secure":   func(t testing.TB, n int) []*Node { return startSecureNodes(t, n) },
	} {
		t.Run(name, func(t *testing.T) {
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
			require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, nodes[0], ""), "lock"))
		})
	}
}

// TestAnAddressIsNotTakenFromAMemberThatIsThere has a member say to be where another one was that has stopped.
func TestAnAddressIsNotTakenFromAMemberThatIsThere(t *testing.T) {
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := followersOf(t, nodes)
	for _, node := range others {
		require.NotNil(t, leader.raft.Server(node.dir.ID))
	}
	taken := others[0].cfg.Address
	member := others[1].members.own()
	member.Address = taken
	reply := leader.admission.join(t.Context(), member, true)
	require.Equal(t, clusterpb.Outcome_NOT_DONE, reply.GetOutcome(), "somebody else answers there")
	require.ErrorContains(t, leader.moves.writeDown(t.Context(), others[1].dir.ID, others[0].raft.Transport.LocalAddr()), "is still that of the member")
	requireAddresses(t, nodes...)

	// It comes back where another one is that has stopped: that one has to be started elsewhere first.
	require.NoError(t, others[0].Close())
	require.NoError(t, others[1].Close())
	cfg := others[1].cfg
	cfg.Address = taken
	moved := reopen(t, cfg)
	require.Eventually(t, func() bool {
		return leader.admission.join(t.Context(), moved.members.own(), true).GetOutcome() == clusterpb.Outcome_NOT_DONE
	}, testWait, 10*time.Millisecond)
	cfg = others[0].cfg
	cfg.Address = freeAddress(t)
	back := reopen(t, cfg)
	awaitReady(t, moved, back)
	requireAddresses(t, leader, moved, back)
}

// TestARemovedServerDoesNotComeBackFromAnotherAddress starts it again where it says to all where it is.
func TestARemovedServerDoesNotComeBackFromAnotherAddress(t *testing.T) {
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	gone := followersOf(t, nodes)[0]
	require.NoError(t, gone.Close())
	requireDone(t, administer(t, []*Node{leader}, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: gone.cfg.Name}))
	reply := leader.admission.join(t.Context(), gone.members.own(), true)
	require.Contains(t, reply.GetResult().GetMessage(), errRemoved.Error())
	cfg := gone.cfg
	cfg.Address = freeAddress(t)
	gone = reopen(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.ErrorContains(t, gone.WaitReady(ctx), errRemoved.Error())
	require.False(t, leader.knows(gone.dir.ID))
}

func followersOf(t testing.TB, nodes []*Node) []*Node {
	leader := leaderOf(t, nodes)
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
}
