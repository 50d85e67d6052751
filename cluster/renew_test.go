package cluster

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// leaseOf gives a client of a session a lease on a name that is not there, and answers the request that
// renews it.
func leaseOf(t testing.TB, node *Node, session, client uint64, name string) *clusterpb.LeaseRequest {
	t.Helper()
	var generation uint64
	require.Eventually(t, func() bool {
		reply, err := node.Execute(t.Context(), &clusterpb.ExecuteRequest{
			Lease: session, Client: client, Request: &clusterpb.ExecuteRequest_Query{Query: &storepb.Query{
				Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: uint64(namespace.RootIno), Name: []byte(name)}},
			}},
		})
		generation = reply.GetLease()
		return err == nil && generation != 0
	}, testWait, 10*time.Millisecond, "%s is never leased", name)
	return &clusterpb.LeaseRequest{Session: session, Client: client, Generation: generation, Left: int64(lease.Duration)}
}

// renewing asks for a renewal, and answers where its answer comes to.
func renewing(ctx context.Context, node *Node, req *clusterpb.LeaseRequest) <-chan *clusterpb.LeaseReply {
	answered := make(chan *clusterpb.LeaseReply, 2) // a second answer is to be seen
	node.KeepLease(ctx, req, func(reply *clusterpb.LeaseReply, _ error) { answered <- reply })
	return answered
}

func TestRenewalsAreHeldUntilTheyAreDue(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	session := uint64(openTestClient(t, node, "").Session())
	var requests []*clusterpb.LeaseRequest
	for client := range uint64(3 * tickSlack) {
		requests = append(requests, leaseOf(t, node, session, client+1, "lock"))
	}
	for range 3 {
		var answers []<-chan *clusterpb.LeaseReply
		for _, req := range requests {
			answers = append(answers, renewing(t.Context(), node, req))
		}
		for _, answered := range answers {
			reply := <-answered
			require.True(t, reply.GetKnown())
			require.True(t, reply.GetExtended())
			require.Empty(t, answered, "it is answered once")
		}
	}
	require.Equal(t, len(requests), held(node))
	require.Empty(t, node.leaseRenewals.kept)
}

// TestRevocationsAreSentAtOnce, and whoever has to drop something is not extended.
func TestRevocationsAreSentAtOnce(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	client := openTestClient(t, node, "")
	req := leaseOf(t, node, uint64(client.Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	answered := renewing(t.Context(), node, req)
	created := make(chan struct{})
	go func() {
		defer close(created)
		_, _ = client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	}()
	reply := <-answered
	require.Equal(t, []uint64{uint64(namespace.RootIno)}, reply.GetDrop())
	require.False(t, reply.GetExtended())
	req.Dropped = reply.GetNumber()
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	<-created
}

func TestALaterRenewalTakesThePlaceOfAnEarlierOne(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	first, second := renewing(t.Context(), node, req), renewing(t.Context(), node, req)
	require.Equal(t, clusterpb.Outcome_NOT_DONE, (<-first).GetOutcome())
	require.True(t, (<-second).GetExtended())
	require.Empty(t, first)
}

// neverDue has a node's renewals never be due, so that only what comes between answers them.
func neverDue(node *Node) {
	node.leaseRenewals.mu.Lock()
	defer node.leaseRenewals.mu.Unlock()
	for _, r := range node.leaseRenewals.kept {
		delete(node.leaseRenewals.due[r.tick], r)
		r.tick = 0
	}
}

// requireNothingKept requires that a node keeps no renewals, nor anything of those that it has answered.
func requireNothingKept(t testing.TB, node *Node) {
	t.Helper()
	node.leaseRenewals.mu.Lock()
	defer node.leaseRenewals.mu.Unlock()
	require.Empty(t, node.leaseRenewals.kept)
	for _, due := range node.leaseRenewals.due {
		require.Empty(t, due)
	}
}

// TestAClosedConnectionGetsNoExtension, or changes would wait for a mount that has ended. It is not
// waited for until its lease is due.
func TestAClosedConnectionGetsNoExtension(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	ctx, cancel := context.WithCancel(t.Context())
	answered := renewing(ctx, node, req)
	neverDue(node)
	cancel()
	require.Equal(t, clusterpb.Outcome_NOT_DONE, (<-answered).GetOutcome())
	requireNothingKept(t, node)
}

// TestARenewalIsNotHeldForLongerThanTheMountKnowsOf has a mount not hear of an extension, so that it has
// less left than the leader has promised.
func TestARenewalIsNotHeldForLongerThanTheMountKnowsOf(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	k := node.leaseRenewals
	dueWith := func(left time.Duration) (due time.Duration) {
		req.Left = int64(left)
		before := monotonic()
		answered := renewing(t.Context(), node, req)
		k.mu.Lock()
		for tick := range k.due {
			due = max(due, time.Duration(tick)*renewalTick-before)
		}
		k.mu.Unlock()
		require.True(t, (<-answered).GetExtended())
		return due
	}
	for _, left := range []time.Duration{0, -time.Hour, lease.Slack, lease.Slack + 3*renewalTick} {
		require.LessOrEqual(t, dueWith(left), max(left-lease.Slack, 0)+2*renewalTick, "%v are left", left)
	}
	require.LessOrEqual(t, dueWith(math.MaxInt64/2), lease.Hold+2*renewalTick, "of what is promised")
}

// TestASupersededRenewalIsForgotten has a mount ask again and again without waiting for the answers.
func TestASupersededRenewalIsForgotten(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	for range 1000 {
		renewing(t.Context(), node, req)
		node.leaseRenewals.mu.Lock()
		all := 0
		for _, due := range node.leaseRenewals.due {
			all += len(due)
		}
		node.leaseRenewals.mu.Unlock()
		require.LessOrEqual(t, all, 1)
	}
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	requireNothingKept(t, node)
}

// TestAChangeWhileRenewalsAreConfirmed has a mount be told what to drop while the leader asks the others
// whether it leads: what it has answered is not extended after that.
func TestAChangeWhileRenewalsAreConfirmed(t *testing.T) {
	nodes := leasingNodes(t, 3)
	node := leaderOf(t, nodes)
	of := lease.Holder{Session: openTestClient(t, node, "").Session(), Client: 7}
	req := leaseOf(t, node, uint64(of.Session), of.Client, "lock")
	r := node.readIndex
	own := newReadIndex(node.ctx, r.raft, r.members, r.leadership, r.peers, r.clock, r.space, r.termReports, r.instances) // the others' answers are not held up
	asking, asked := make(chan struct{}, 9), make(chan struct{})
	own.round = func() error {
		asking <- struct{}{}
		<-asked
		return own.ask()
	}
	node.leaseRenewals.readIndex = own
	answered := renewing(t.Context(), node, req)
	<-asking
	over := node.leaseGate.table.RevokeAhead([]ids.Inode{namespace.RootIno})
	reply := <-answered
	require.False(t, reply.GetExtended())
	require.NotEmpty(t, reply.GetDrop())
	over()
	node.leaseGate.table.Acknowledge(of, req.GetGeneration(), reply.GetNumber()) // so that nothing else is in the way of an extension
	close(asked)
	req.Left = 0
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	require.Empty(t, answered)
}

// TestADeposedLeaderAnswersAllRenewals, and again if it leads again.
func TestADeposedLeaderAnswersAllRenewals(t *testing.T) {
	nodes := leasingNodes(t, 3)
	node := leaderOf(t, nodes)
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	answered := renewing(t.Context(), node, req)
	neverDue(node)
	require.NoError(t, node.raft.LeadershipTransfer().Error())
	require.Equal(t, clusterpb.Outcome_NOT_LEADER, (<-answered).GetOutcome())
	requireNothingKept(t, node)
	other := leaderOf(t, nodes)
	require.NotSame(t, node, other)
	require.NoError(t, other.raft.LeadershipTransferToServer(raft.ServerID(node.dir.ID), raft.ServerAddress(node.cfg.Address)).Error())
	require.Eventually(t, func() bool { return node.leadership.term() != 0 }, testWait, 10*time.Millisecond)
	require.False(t, (<-renewing(t.Context(), node, req)).GetKnown(), "what it promised in another term it does not know any more")
}

func TestANodeThatEndsAnswersAllRenewals(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	req := leaseOf(t, node, uint64(openTestClient(t, node, "").Session()), 7, "lock")
	require.True(t, (<-renewing(t.Context(), node, req)).GetExtended())
	answered := renewing(t.Context(), node, req)
	node.cancel()
	require.Equal(t, clusterpb.Outcome_NOT_DONE, (<-answered).GetOutcome())
	require.Equal(t, clusterpb.Outcome_NOT_DONE, (<-renewing(t.Context(), node, req)).GetOutcome())
}
