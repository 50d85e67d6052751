package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus/fulldisk"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// administer asks as `lockfs member` does, until it is done or refused.
func administer[Request any](
	t testing.TB, nodes []*Node, method func(rpc.Node, context.Context, Request) (*clusterpb.AdminReply, error), req Request,
) *storepb.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	var entries []rpc.Node
	for _, node := range nodes {
		entries = append(entries, node)
	}
	reply, err := rpc.Ask(ctx, rpc.NewRouter(nodes[0].peers, entries...), method, req)
	require.NoError(t, err)
	return reply.GetResult()
}

func requireDone(t testing.TB, result *storepb.Result) {
	t.Helper()
	require.Equal(t, storepb.Code_OK, result.GetCode(), result.GetMessage())
}

// reopen starts a node again that was closed.
func reopen(t testing.TB, cfg Config) *Node {
	t.Helper()
	cfg.Metrics, cfg.Advertise = nil, ""
	node, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	return node
}

func awaitReady(t testing.TB, nodes ...*Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	var waiting sync.WaitGroup
	for _, node := range nodes {
		waiting.Go(func() {
			if err := node.WaitReady(ctx); err != nil {
				t.Errorf("%s: %v", node.cfg.Name, err)
			}
		})
	}
	waiting.Wait()
}

func TestANonvoterStaysOneUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	cfg := testConfig(t, "n2", nodes[0].cfg.Address)
	cfg.Nonvoter = true
	replica := startNode(t, cfg)
	require.Len(t, nodes[0].raft.VoterIDs(), 2)
	require.Equal(t, []string{replica.dir.ID}, nodes[0].raft.NonvoterIDs())
	client := openTestClient(t, replica, "")
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.NoError(t, replica.Close())
	cfg.Nonvoter = false
	replica = reopen(t, cfg)
	awaitReady(t, replica)
	require.Len(t, nodes[0].raft.VoterIDs(), 2, "a start does not change it")

	nodes = append(nodes, replica)
	for range 2 {
		requireDone(t, administer(t, nodes, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: "n2", Vote: true}))
	}
	require.Len(t, leaderOf(t, nodes).raft.VoterIDs(), 3)
	for range 2 {
		requireDone(t, administer(t, nodes, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: "n0"}))
	}
	require.Eventually(t, func() bool { return nodes[0].raft.State() == raft.Follower }, testWait, 10*time.Millisecond, "it led")
	others := nodes[1:]
	require.NotContains(t, leaderOf(t, others).raft.VoterIDs(), nodes[0].dir.ID)
	require.Equal(t, storepb.Code_NOT_FOUND, administer(t, others, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: "nobody"}).GetCode())
}

func TestAVoterThatTheQuorumNeedsIsNotDemoted(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	require.NoError(t, others[0].Close())
	here := []*Node{leader, others[1]}
	for _, name := range []string{leader.cfg.Name, others[1].cfg.Name} {
		result := administer(t, here, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: name})
		require.Equal(t, storepb.Code_BUSY, result.GetCode())
		require.Contains(t, result.GetMessage(), "of the other 2 voters 1 answer")
	}
	result := administer(t, here, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: others[1].cfg.Name})
	require.Equal(t, storepb.Code_BUSY, result.GetCode())
	requireDone(t, administer(t, here, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: others[0].cfg.Name}))
}

// TestAVoterWithAFullDiskCannotDecide has one whose disk is full, and which answers all the same.
func TestAVoterWithAFullDiskCannotDecide(t *testing.T) {
	t.Parallel()
	leader := startNode(t, testConfig(t, "n0"))
	cfg := testConfig(t, "n1", leader.cfg.Address)
	is := new(atomic.Bool)
	cfg.entries = func(log raft.LogStore) raft.LogStore { return fulldisk.Log{LogStore: log, Full: is} }
	full := startNode(t, cfg)
	needed := startNode(t, testConfig(t, "n2", leader.cfg.Address))
	is.Store(true)
	client := openTestClient(t, needed, "")
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.Eventually(t, full.raft.IsFull, testWait, time.Millisecond)
	refused := leader.promoter.quorumNeeds(needed.dir.ID, false)
	require.Equal(t, storepb.Code_BUSY, refused.GetCode())
	require.Contains(t, refused.GetMessage(), "of the other 2 voters 1 answer")
	_, able := leader.failureDetector.probeAll()
	require.Equal(t, map[string]bool{leader.dir.ID: true, full.dir.ID: false, needed.dir.ID: true}, able)
	_, err := leader.joiner.dialer.identify(t.Context(), full.members.own())
	require.ErrorContains(t, err, "its disk is full")
	is.Store(false)
	require.Eventually(t, func() bool { return leader.promoter.quorumNeeds(needed.dir.ID, false) == nil }, testWait, 10*time.Millisecond)
}

// TestLeadershipIsTransferredToAVoterThatAnswers has one of two voters hang that raft itself would
// choose: it has all entries.
func TestLeadershipIsTransferredToAVoterThatAnswers(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := followersOf(t, nodes)
	hangs, answers := others[0], others[1]
	hangs.server.Close()
	require.ErrorIs(t, leader.promoter.transferLeadership(t.Context()), raftstore.ErrNotDone)
	require.Eventually(t, func() bool { return answers.leadership.term() != 0 }, testWait, time.Millisecond)
	require.Less(t, hangs.leadership.readyTerm.Load(), answers.raft.CurrentTerm())
}

// TestEachServerIsReplaced replaces the leader too.
func TestEachServerIsReplaced(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	client := openTestClient(t, nodes[2], "")
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	for i, name := range []string{"n3", "n4"} {
		cfg := testConfig(t, name, nodes[1].cfg.Address, nodes[2].cfg.Address)
		cfg.Nonvoter = i == 0
		nodes = append(nodes, startNode(t, cfg))
		requireDone(t, administer(t, nodes[1:], rpc.Node.Remove, &clusterpb.RemoveRequest{Name: nodes[0].cfg.Name, Replacement: name}))
		requireDone(t, administer(t, nodes[1:], rpc.Node.Remove, &clusterpb.RemoveRequest{Name: nodes[0].cfg.Name, Replacement: name}))
		require.NoError(t, nodes[0].Close())
		nodes = nodes[1:]
		require.Len(t, leaderOf(t, nodes).raft.VoterIDs(), 3)
	}
	require.Equal(t, storepb.Code_EXISTS, create(t, client, "lock"))
}

// TestAReplacementGoesOnWithAnotherLeader loses the leader as soon as that has given the newcomer its vote.
func TestAReplacementGoesOnWithAnotherLeader(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	cfg := testConfig(t, "n3", nodes[0].cfg.Address)
	cfg.Nonvoter = true
	fresh := startNode(t, cfg)
	leader := leaderOf(t, nodes)
	left := append(followersOf(t, nodes), fresh)
	old := left[0]
	left = left[1:]
	var losing sync.WaitGroup
	losing.Go(func() {
		assert.Eventually(t, func() bool { return slices.Contains(leader.raft.VoterIDs(), fresh.dir.ID) }, testWait, time.Millisecond)
		_ = leader.Close()
	})
	defer losing.Wait()
	requireDone(t, administer(t, left, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: old.cfg.Name, Replacement: "n3"}))
	servers := leaderOf(t, left).raft.VoterIDs()
	require.Len(t, servers, 3)
	require.NotContains(t, servers, old.dir.ID)
	require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, left[0], ""), "lock"))
}

// TestConcurrentDemotionsKeepAQuorum leaves one.
func TestConcurrentDemotionsKeepAQuorum(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	var taking sync.WaitGroup
	codes := make([]storepb.Code, len(nodes))
	for i, node := range nodes {
		taking.Go(func() {
			for codes[i] = storepb.Code_BUSY; codes[i] == storepb.Code_BUSY; { // a voter that is slow to answer may look as if it were gone
				codes[i] = administer(t, nodes, rpc.Node.SetVote, &clusterpb.SetVoteRequest{Name: node.cfg.Name}).GetCode()
			}
		})
	}
	taking.Wait()
	slices.Sort(codes)
	require.Equal(t, []storepb.Code{storepb.Code_OK, storepb.Code_OK, storepb.Code_NOT_PERMITTED}, codes)
	require.Len(t, leaderOf(t, nodes).raft.VoterIDs(), 1)
	require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, nodes[0], ""), "lock"))
}

func TestADeadServerIsRemoved(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	for _, node := range nodes { // another one may come to lead
		node.failureDetector.mu.Lock()
		node.failureDetector.removeAfter = 3 * time.Second
		node.failureDetector.mu.Unlock()
	}
	gone := others[0].dir.ID
	require.NoError(t, others[0].Close())
	require.Eventually(t, func() bool { return !leader.knows(gone) }, testWait, 10*time.Millisecond)
	require.NoError(t, others[1].Close())
	require.Len(t, leader.raft.VoterIDs(), 2)
}

// TestAServerOfAnotherClusterIsNotAMember though it has the member's id and address: it was recovered
// from the member's directory.
func TestAServerOfAnotherClusterIsNotAMember(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	member := nodes[1].dir.ID
	there, _ := nodes[0].failureDetector.probe(member)
	require.True(t, there)
	require.NoError(t, nodes[1].dir.SetCluster("another"))
	there, _ = nodes[0].failureDetector.probe(member)
	require.False(t, there)
}

func TestFailureDetectorFindsDeadMembers(t *testing.T) {
	t.Parallel()
	v := &failureDetector{removeAfter: 10 * time.Second}
	v.reset(time.Hour)
	now := time.Hour
	look := func(passed time.Duration, there bool) string {
		now += passed
		return v.record(now, map[string]bool{"a": there, "b": true})
	}
	require.Empty(t, look(time.Hour, false), "the leader was stopped")
	require.Empty(t, look(2*time.Second, false))
	require.Empty(t, look(2*time.Second, true))
	for range 4 {
		require.Empty(t, look(2*time.Second, false))
	}
	require.Equal(t, "a", look(2*time.Second, false))
	answered := map[string]bool{"a": true, "b": true}
	require.True(t, isDispensable("c", []string{"a", "b", "c"}, answered))
	require.False(t, isDispensable("b", []string{"a", "b"}, answered), "one would be left")
	require.False(t, isDispensable("c", []string{"a", "b", "c", "d", "e"}, answered))
}

// TestARemovedServerDoesNotComeBackFromAnotherAddress starts it again where it says to all where it is.
func TestARemovedServerDoesNotComeBackFromAnotherAddress(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	gone := followersOf(t, nodes)[0]
	require.NoError(t, gone.Close())
	requireDone(t, administer(t, []*Node{leader}, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: gone.cfg.Name}))
	reply := leader.joiner.join(t.Context(), gone.members.own(), true)
	require.Contains(t, reply.GetResult().GetMessage(), errRemoved.Error())
	cfg := gone.cfg
	cfg.Address = loopback.Free(t)
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
