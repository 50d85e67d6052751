package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// strayMember is one that nobody reaches.
func strayMember(t testing.TB, name string) *storepb.Member {
	t.Helper()
	return &storepb.Member{Id: name + "-1", Name: name, Address: loopback.Free(t)}
}

// impatient has a leader wait for so long.
func impatient(node *Node, p probationLimits) {
	node.joiner.learners.mu.Lock()
	defer node.joiner.learners.mu.Unlock()
	node.joiner.learners.limits = p
}

// addNewcomer puts a node into the configuration, without a vote, as a leader does that is deposed right
// after.
func addNewcomer(t testing.TB, leader *Node, member *storepb.Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	result, err := leader.proposer.propose(ctx, setMember(member))
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	add := leader.raft.AddNonvoter(raft.ServerID(member.GetId()), raft.ServerAddress(member.GetAddress()), 0, 0)
	require.NoError(t, consensus.Await(ctx, add))
}

func (n *Node) knows(id string) bool { return n.raft.Server(id) != nil || n.members.get(id) != nil }

// TestAStrayJoinLeavesTheClusterAlone asks a single server to take in somebody whom it does not reach, or
// who is not whom he says.
func TestAStrayJoinLeavesTheClusterAlone(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	client := openTestClient(t, node, "")
	other := startNodes(t, 1)[0]
	unreached, impostor := strayMember(t, "unreached"), strayMember(t, "impostor")
	impostor.Address = other.cfg.Address
	require.NoError(t, other.dir.SetCluster(node.dir.ClusterID())) // one of another cluster would not even listen
	for _, c := range []struct {
		member *storepb.Member
		reason string
	}{
		{unreached, "its address " + unreached.GetAddress() + " does not answer"},
		{impostor, fmt.Sprintf("at its address %s answers %q", impostor.GetAddress(), other.dir.ID)},
	} {
		reply := node.joiner.join(t.Context(), c.member, false)
		require.Equal(t, clusterpb.Outcome_NOT_DONE, reply.GetOutcome(), "it may be starting")
		require.Contains(t, reply.GetResult().GetMessage(), c.reason)
		require.False(t, node.knows(c.member.GetId()))
		require.Equal(t, storepb.Code_OK, create(t, client, c.member.GetName()))

		impatient(node, probationLimits{})
		reply = node.joiner.join(t.Context(), c.member, false)
		require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome(), "it would ask for ever")
		require.Equal(t, storepb.Code_NOT_PERMITTED, reply.GetResult().GetCode())
		require.Contains(t, reply.GetResult().GetMessage(), c.reason)
		impatient(node, newLearners().limits)
	}
	require.Equal(t, []string{node.dir.ID}, node.raft.VoterIDs())
	cfg := node.cfg
	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, node.Close())
	cfg.Metrics = nil
	node = startNode(t, cfg)
	require.Equal(t, storepb.Code_EXISTS, create(t, openTestClient(t, node, ""), "unreached"))
}

// TestARejectedNodeSaysWhy starts one in a cluster whose leader cannot reach it.
func TestARejectedNodeSaysWhy(t *testing.T) {
	t.Parallel()
	leader := startNodes(t, 1)[0]
	impatient(leader, probationLimits{silence: time.Hour, progress: time.Hour})
	cfg := testConfig(t, "n1", leader.cfg.Address)
	node, err := Open(cfg)
	require.NoError(t, err)
	require.NoError(t, node.raft.Transport.(raft.WithClose).Close()) // as if others did not reach it
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	err = node.WaitReady(ctx)
	require.ErrorContains(t, err, "the leader n0 cannot reach n1")
	require.ErrorContains(t, err, cfg.Address)
	require.NoError(t, node.Close())

	cfg.Address, cfg.Metrics = loopback.Free(t), nil
	node = startNode(t, cfg)
	require.Equal(t, raft.ServerAddress(cfg.Address), leader.raft.Server(node.dir.ID).Address, "with another address it may come")
}

// TestALearnerThatDoesNotAnswerIsDropped has one in the configuration that is gone. Meanwhile the only
// voter goes on, and the newcomer is shown.
func TestALearnerThatDoesNotAnswerIsDropped(t *testing.T) {
	t.Parallel()
	leader := startNodes(t, 1)[0]
	client := openTestClient(t, leader, "")
	stray := strayMember(t, "stray")
	require.True(t, leader.proposer.exclusive.Lock(t.Context())) // or it is tidied up before raft knows it
	addNewcomer(t, leader, stray)
	leader.proposer.exclusive.Unlock()
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	admin, err := NewAdmin([]string{leader.cfg.Address}, nil)
	require.NoError(t, err)
	defer admin.Close()
	members, err := admin.Members(t.Context())
	require.NoError(t, err)
	states := make(map[string]bool)
	for _, member := range members {
		states[member.GetName()] = member.Joining
	}
	require.Equal(t, map[string]bool{"n0": false, "stray": true}, states)

	impatient(leader, probationLimits{progress: time.Hour})
	require.Eventually(t, func() bool { return !leader.knows(stray.GetId()) }, testWait, 10*time.Millisecond)
	reply := leader.joiner.join(t.Context(), stray, false)
	require.Equal(t, storepb.Code_NOT_PERMITTED, reply.GetResult().GetCode())
	require.Contains(t, reply.GetResult().GetMessage(), "the leader n0 dropped it: it has not answered")
	require.Contains(t, reply.GetResult().GetMessage(), stray.GetAddress())
}

// TestANewLeaderContinuesWithALearner has the leader that began with it, and that is the only one it was
// told of, go.
func TestANewLeaderContinuesWithALearner(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	newcomer, err := Open(testConfig(t, "n3", leader.cfg.Address))
	require.NoError(t, err)
	defer func() { _ = newcomer.Close() }()
	require.NoError(t, newcomer.dir.SetCluster(leader.dir.ClusterID())) // as it does before it asks
	require.True(t, leader.proposer.exclusive.Lock(t.Context()))        // it does not get any further
	addNewcomer(t, leader, newcomer.members.own())
	require.NoError(t, newcomer.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Member(newcomer.dir.ID) != nil }))
	require.Equal(t, raft.Nonvoter, leader.raft.Server(newcomer.dir.ID).Suffrage)
	require.NoError(t, leader.Close())
	leader.proposer.exclusive.Unlock()

	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, newcomer.WaitReady(ctx))
	require.True(t, newcomer.dir.Joined)
	require.Contains(t, leaderOf(t, others).raft.VoterIDs(), newcomer.dir.ID)
}

// TestABusyClusterAcceptsLearners has commands committed all the time, so that a newcomer is always some
// behind.
func TestABusyClusterAcceptsLearners(t *testing.T) {
	t.Parallel()
	leader := startNodes(t, 1)[0]
	client := openTestClient(t, leader, "")
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop()
	for i := range 8 {
		busy.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				_, _ = client.Mutate(ctx, &storepb.Caller{}, createOp(fmt.Sprintf("lock%d-%d", i, round)))
			}
		})
	}
	startNode(t, testConfig(t, "n1", leader.cfg.Address))
	require.Len(t, leader.raft.VoterIDs(), 2)
}

// TestWhatIsLeftOfAMemberCanBeRemoved removes one that is joining, and one that raft does not know.
func TestWhatIsLeftOfAMemberCanBeRemoved(t *testing.T) {
	t.Parallel()
	leader := startNodes(t, 1)[0]
	joining, left := strayMember(t, "joining"), strayMember(t, "left")
	require.True(t, leader.proposer.exclusive.Lock(t.Context())) // or it is tidied up before raft knows it
	addNewcomer(t, leader, joining)
	leader.proposer.exclusive.Unlock() // while somebody joins, nothing is
	result, err := leader.proposer.propose(t.Context(), setMember(left))
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	for _, member := range []*storepb.Member{left, joining} {
		reply := leader.remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: member.GetName()})
		require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
		require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode(), "%v", reply)
		require.False(t, leader.knows(member.GetId()))
	}
	reply := leader.joiner.join(t.Context(), joining, false)
	require.Contains(t, reply.GetResult().GetMessage(), errRemoved.Error())
	require.Equal(t, storepb.Code_NOT_PERMITTED, leader.remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: "n0"}).GetResult().GetCode(), "the only one")

	result, err = leader.proposer.propose(t.Context(), setMember(left))
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	require.Eventually(t, func() bool { return !leader.knows(left.GetId()) }, testWait, 10*time.Millisecond, "it is tidied up")
}

// TestAVoterStaysOneWhateverItsJoinSays asks again as a voter that is known, from which nothing can be
// reached.
func TestAVoterStaysOneWhateverItsJoinSays(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	impatient(leader, probationLimits{})
	for _, node := range nodes {
		member := node.members.own()
		reply := leader.joiner.join(t.Context(), member, false)
		require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
		require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode(), "%v", reply)
		require.Equal(t, member.GetAddress(), leader.members.get(node.dir.ID).GetAddress())
		member.Address = loopback.Free(t)
		reply = leader.joiner.join(t.Context(), member, false)
		if node == leader {
			require.Equal(t, storepb.Code_INVALID, reply.GetResult().GetCode())
		} else {
			require.Equal(t, clusterpb.Outcome_NOT_DONE, reply.GetOutcome(), "it is not there")
		}
		require.Equal(t, raft.ServerAddress(node.cfg.Address), leader.raft.Server(node.dir.ID).Address)
	}
	require.Len(t, leader.raft.VoterIDs(), 3)
}

func TestProbationLimits(t *testing.T) {
	t.Parallel()
	const second = time.Second
	server := raft.Server{ID: "a", Address: "here"}
	gone := errors.New("no answer")
	c := newLearners()
	now := time.Hour
	look := func(passed time.Duration, applied, committed ids.Index, err error) (bool, string) {
		now += passed
		return c.evaluate("a", now, applied, committed, err)
	}
	quiet := func(ready bool, reason string) {
		t.Helper()
		require.False(t, ready)
		require.Empty(t, reason)
	}

	c.begin(server, now, 100)
	quiet(look(second/10, 50, 110, nil))
	ready, _ := look(second/10, 100, 120, nil)
	require.True(t, ready, "all that was committed a moment ago, though not what has been since")
	quiet(look(second, 99, 200, nil))
	quiet(look(second, 150, 300, nil))
	ready, _ = look(second, 300, 400, nil)
	require.True(t, ready)

	for range 5 {
		quiet(look(time.Hour, 0, 400, gone)) // this node was stopped
	}
	quiet(look(second, 300, 500, nil))
	for range int(c.limits.silence/second) - 1 {
		quiet(look(second, 0, 500, gone))
	}
	quiet(look(second, 300, 500, nil))
	for range int(c.limits.silence / second) {
		quiet(look(second, 0, 500, gone))
	}
	_, reason := look(second, 0, 500, gone)
	require.Contains(t, reason, gone.Error())
	c.reject("a", reason, now)
	require.Equal(t, reason, c.rejected("a", now+rejectionTTL))
	require.Empty(t, c.rejected("a", now+rejectionTTL+1))

	c.begin(server, now, 1000)
	quiet(look(second, 0, 1000, gone))
	for range int(c.limits.progress/second) - 1 {
		quiet(look(second, 500, 1000, nil))
	}
	quiet(look(second, 501, 1000, nil))
	for range int(c.limits.progress / second) {
		quiet(look(second, 501, 1000, nil))
	}
	_, reason = look(second, 501, 1000, nil)
	require.Contains(t, reason, "has not caught up any further")

	require.False(t, c.noteUnreachable("b", now))
	require.False(t, c.noteUnreachable("b", now+5*second))
	c.noteReachable("b")
	require.False(t, c.noteUnreachable("b", now+12*second))
	require.False(t, c.noteUnreachable("b", now+30*second), "another start of it")
	require.False(t, c.noteUnreachable("b", now+35*second))
	require.True(t, c.noteUnreachable("b", now+40*second))
	require.False(t, c.noteUnreachable("b", now+41*second), "and another")
}
