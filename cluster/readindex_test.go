package cluster

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestQuorumRoundsBeginAfterTheRequest counts how many rounds had begun when a reader came: its own
// begins after that.
func TestQuorumRoundsBeginAfterTheRequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	begun := 0
	goOn := make(chan struct{})
	c := &quorumRounds{round: func() error {
		mu.Lock()
		begun++
		n := begun
		mu.Unlock()
		<-goOn
		if n == 2 {
			return errNoQuorum
		}
		return nil
	}}
	results := make(chan error, 10)
	reader := func() { results <- c.confirm(t.Context()) }
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return begun
	}
	go reader()
	require.Eventually(t, func() bool { return count() == 1 }, testWait, time.Millisecond)
	for range 9 {
		go reader()
	}
	waiting := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.next != nil
	}
	require.Eventually(t, waiting, testWait, time.Millisecond)
	require.Equal(t, 1, count(), "the others wait for one that begins later")
	close(goOn)
	failed := 0
	for range cap(results) {
		if err := <-results; err != nil {
			require.ErrorIs(t, err, errNoQuorum)
			failed++
		}
	}
	require.Positive(t, failed, "readers of the second round")
	require.LessOrEqual(t, failed, 9)
}

// TestOneVotersReportIsEnough has a leader ask one voter at a time, also one that is gone.
func TestOneVotersReportIsEnough(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	client := openTestClient(t, leader, "")
	for _, node := range nodes {
		if node != leader {
			require.NoError(t, node.Close())
			break
		}
	}
	for range 10 {
		require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, client, "none"))
	}
}

func leaderOf(t testing.TB, nodes []*Node) *Node {
	t.Helper()
	var leader *Node
	require.Eventually(t, func() bool {
		for _, node := range nodes {
			if node.leadership.term() != 0 {
				leader = node
			}
		}
		return leader != nil
	}, testWait, time.Millisecond)
	return leader
}

func TestReportsThatCount(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	term := leader.leadership.term()
	var other *Node
	for _, node := range nodes {
		if node != leader {
			other = node
		}
	}
	its, own := other.dir.Instance(), leader.dir.Instance()
	for what, c := range map[string]struct {
		voter    string
		instance ids.Instance
		term     ids.Term
		counts   bool
	}{
		"another voter's":           {other.dir.ID, its, term, true},
		"of an earlier term":        {other.dir.ID, its, term - 1, false},
		"of a later term":           {other.dir.ID, its, term + 1, false},
		"of another process of it":  {other.dir.ID, its + 1, term, false},
		"of a process without name": {other.dir.ID, 0, term, false},
		"its own":                   {leader.dir.ID, own, term, false},
		"of one that is no voter":   {"somebody", its, term, false},
		"without a voter":           {"", 0, term, false},
		"without a voter or a term": {"", 0, 0, false},
	} {
		request := &clusterpb.ExecuteRequest{Voter: c.voter, VoterInstance: uint64(c.instance), Term: uint64(c.term)}
		require.Equal(t, c.counts, leader.readIndex.confirmedBy(request, term), what)
	}
	nodes = startNodes(t, 4)
	leader = leaderOf(t, nodes)
	term = leader.leadership.term()
	for _, node := range nodes {
		require.False(t, leader.readIndex.confirmedBy(&clusterpb.ExecuteRequest{Voter: node.dir.ID, VoterInstance: uint64(node.dir.Instance()), Term: uint64(term)}, term), "two of four")
	}
}

// TestAnyStateThatIsNewEnough asks a node that does not lead for a state that it has, and for one that it
// has not.
func TestAnyStateThatIsNewEnough(t *testing.T) {
	t.Parallel()
	nodes := nodesThatLease(t, 3, false) // see TestOnlyTheLeaderAnswersFromItsState
	leader := leaderOf(t, nodes)
	client := openTestClient(t, leader, "")
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	query := func(since uint64) *storepb.Query {
		return &storepb.Query{Since: since, Query: &storepb.Query_Lookup{
			Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte("lock")},
		}}
	}
	result, err := client.Query(t.Context(), query(0))
	require.NoError(t, err)
	index := result.GetIndex()
	require.NotZero(t, index)
	for _, node := range nodes {
		ask := func(since uint64) *clusterpb.ExecuteReply {
			return ask(t, node, rpc.Node.Execute, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query(since)}})
		}
		require.NoError(t, node.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() >= ids.Index(index) }))
		reply := ask(index)
		require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
		require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode())
		require.GreaterOrEqual(t, reply.GetResult().GetIndex(), index)
		if node == leader {
			continue
		}
		for _, since := range []uint64{0, uint64(node.fsm.State().Index() + 1)} {
			require.Equal(t, clusterpb.Outcome_NOT_LEADER, ask(since).GetOutcome(), "since %d", since)
		}
	}
}

// TestALeaderThatRemovesItselfIsNotConfirmed leaves such a leader one of the other three voters, so that
// the removal cannot be committed. That one is no majority with it: the two that it does not hear could
// have elected a leader.
func TestALeaderThatRemovesItselfIsNotConfirmed(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 4)
	leader := leaderOf(t, nodes)
	term := leader.leadership.term()
	others := slices.DeleteFunc(nodes, func(n *Node) bool { return n == leader })
	left := others[0]
	for _, gone := range others[1:] {
		gone.raft.Shutdown() // does not wait: the leader would notice
	}
	leader.raft.RemoveServer(raft.ServerID(leader.dir.ID), 0, 0)
	require.Eventually(t, func() bool { return !slices.Contains(leader.raft.VoterIDs(), leader.dir.ID) }, testWait, time.Millisecond)
	require.ErrorIs(t, leader.readIndex.ask(), errNoQuorum)
	require.False(t, leader.readIndex.confirmedBy(&clusterpb.ExecuteRequest{Voter: left.dir.ID, VoterInstance: uint64(left.dir.Instance()), Term: uint64(term)}, term))
	require.False(t, leader.readIndex.isQuorumWith(left.dir.ID, uint64(left.dir.Instance())))
}

// TestOnlyTheVotersOwnReportCounts has another node answer at the address of a voter.
func TestOnlyTheVotersOwnReportCounts(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(nodes, func(n *Node) bool { return n == leader })
	voter, stranger := leader.members.get(others[0].dir.ID), others[1]
	term := leader.leadership.term()
	require.Eventually(t, func() bool { return leader.readIndex.probeTerm(voter, rpc.ProbeTimeout).term == term }, testWait, time.Millisecond)
	voter = proto.CloneOf(voter)
	voter.Address = stranger.cfg.Address
	leader.clock.keepOnly(nil)
	require.Zero(t, leader.readIndex.probeTerm(voter, rpc.ProbeTimeout).term)
	leader.clock.mu.Lock()
	defer leader.clock.mu.Unlock()
	require.NotContains(t, leader.clock.peers, voter.GetId(), "the clock of another host")
}
