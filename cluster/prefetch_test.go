package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// do has a client do an operation, which has to work.
func do(t testing.TB, client *session.Client, op *storepb.Op) *storepb.Result {
	t.Helper()
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	return result
}

// find asks what the kernel does before each call that uses a name.
func find(t testing.TB, client *session.Client, name string) *storepb.Result {
	t.Helper()
	_, err := client.Query(t.Context(), getAttrOf(namespace.RootIno))
	require.NoError(t, err)
	result, err := client.Query(t.Context(), lookupOf(name))
	require.NoError(t, err)
	return result
}

func getAttrOf(ino uint64) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
}

func lookupOf(name string) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte(name)}}}
}

func writeOp(created *storepb.Result, content string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
		Ino: created.GetAttr().GetIno(), IfVersion: created.GetAttr().GetVersion(), Content: []byte(content), Name: created.GetObservations()[0],
	}}}
}

func removeOp(name string, judged uint64) *storepb.Op {
	op := unlinkOp(name)
	op.GetUnlink().Judged = &judged
	return op
}

// cycle is what a program has a mount ask that takes a lock and lets go of it.
func cycle(t testing.TB, client *session.Client, name string) {
	t.Helper()
	require.Equal(t, storepb.Code_NOT_FOUND, find(t, client, name).GetCode())
	created := do(t, client, createOp(name))
	do(t, client, writeOp(created, "content"))
	found := find(t, client, name)
	require.Equal(t, created.GetAttr().GetIno(), found.GetAttr().GetIno())
	require.EqualValues(t, len("content"), found.GetAttr().GetSize())
	read, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: found.GetAttr().GetIno(), Name: found.GetObservations()[0]},
	}})
	require.NoError(t, err)
	require.Equal(t, "content", string(read.GetContent()))
	attr, err := client.Query(t.Context(), getAttrOf(found.GetAttr().GetIno()))
	require.NoError(t, err)
	require.EqualValues(t, len("content"), attr.GetAttr().GetSize())
	find(t, client, name)
	do(t, client, removeOp(name, found.GetAttr().GetIno()))
}

// TestACycleSendsOnlyItsCommands: the leader has answered all else with these.
func TestACycleSendsOnlyItsCommands(t *testing.T) {
	nodes := leasingNodes(t, 3)
	awaitMayLease(t, nodes[0])
	counts, client := openDeaf(t, nodes[0])
	cycle(t, client, "lock")
	for range 20 {
		before := counts.asked.Load()
		cycle(t, client, "lock")
		require.EqualValues(t, 3, counts.asked.Load()-before)
	}
}

// TestPrefetchedAnswersAreRevoked by who changes it, and who has changed it is not answered from before.
func TestPrefetchedAnswersAreRevoked(t *testing.T) {
	nodes := leasingNodes(t, 3)
	awaitMayLease(t, nodes[0])
	clients := []*session.Client{openTestClient(t, nodes[0], ""), openTestClient(t, nodes[1], ""), dialNode(t, nodes)}
	for i := range 12 {
		maker, taker := clients[i%3], clients[(i+1+i/3%2)%3]
		created := do(t, maker, createOp("lock"))
		for _, client := range clients {
			require.Equal(t, storepb.Code_OK, find(t, client, "lock").GetCode())
		}
		do(t, taker, removeOp("lock", created.GetAttr().GetIno()))
		for _, client := range clients {
			require.Equal(t, storepb.Code_NOT_FOUND, find(t, client, "lock").GetCode())
		}
		if i%4 == 0 {
			time.Sleep(lease.QuietPeriod) // for who is alone
		}
	}
}

// leasing is a node that leads and gives leases, with two sessions.
func leasing(t *testing.T) (node *Node, here, there lease.Request) {
	t.Helper()
	node = leasingNodes(t, 1)[0]
	awaitMayLease(t, node)
	request := func() lease.Request {
		return lease.Request{Holder: lease.Holder{Session: openTestClient(t, node, "").Session(), Client: 1}}
	}
	return node, request(), request()
}

// changing is a command whose mount says that it changes the root.
func changing() *clusterpb.ExecuteRequest {
	return &clusterpb.ExecuteRequest{
		GivenUp: []uint64{namespace.RootIno},
		Also:    []*storepb.Query{getAttrOf(namespace.RootIno), lookupOf("lock"), {Query: statFs.GetQuery().GetQuery()}},
	}
}

func at(by lease.Request, position uint64) lease.Request {
	by.Asked = position
	return by
}

func yes() bool { return true }

// touchRoot changes the root, as nobody does who may hold a lease.
func touchRoot(t *testing.T, node *Node) {
	t.Helper()
	mode := uint32(0o755)
	op := &storepb.Op{Op: &storepb.Op_SetAttr{SetAttr: &storepb.SetAttr{Ino: namespace.RootIno, Mode: &mode}}}
	_, err := node.store.Propose(t.Context(), &storepb.Command{Op: op})
	require.NoError(t, err)
}

func TestAFileThatHasJustChangedIsLeasedToItsOnlyUser(t *testing.T) {
	node, here, there := leasing(t)
	done := &storepb.Result{}
	touchRoot(t, node)
	q := node.leaseGate.beginPrefetch(at(here, 1), changing())
	require.Nil(t, node.leaseGate.answerPrefetch(q, &storepb.Result{Code: storepb.Code_EXISTS}, yes), "it has done nothing")
	require.Nil(t, node.leaseGate.answerPrefetch(q, done, func() bool { return false }), "another one leads")
	node.leaseGate.table.Release(here.Holder, uint64(node.leadership.term())<<32+1)
	answers := node.leaseGate.answerPrefetch(q, done, yes)
	require.Len(t, answers, 3)
	require.NotZero(t, answers[0].GetLease())
	require.EqualValues(t, namespace.RootIno, answers[0].GetResult().GetAttr().GetIno())
	require.NotZero(t, answers[1].GetLease())
	require.Equal(t, storepb.Code_NOT_FOUND, answers[1].GetResult().GetCode())
	require.Zero(t, answers[2].GetLease(), "of no kind that is leased")

	node.leaseGate.beginPrefetch(at(here, 2), changing()) // else it is waited for
	touchRoot(t, node)
	q = node.leaseGate.beginPrefetch(at(there, 1), changing())
	node.leaseGate.beginPrefetch(at(here, 3), changing()) // so that the last one has just changed it
	require.Nil(t, node.leaseGate.answerPrefetch(q, done, yes), "another one holds it, or has changed it just now")
	time.Sleep(lease.QuietPeriod)
	node.leaseGate.table.Expire(time.Hour)
	q = node.leaseGate.beginPrefetch(at(there, 2), changing())
	touchRoot(t, node)
	require.NotNil(t, node.leaseGate.answerPrefetch(q, done, yes))
}

// TestPrefetchedLeasesLastFromTheArrivalOfTheCommand, which its commit has confirmed, however long the
// answer was held back.
func TestPrefetchedLeasesLastFromTheArrivalOfTheCommand(t *testing.T) {
	node, here, _ := leasing(t)
	require.Eventually(t, func() bool { return monotonic() > lease.Duration }, testWait, time.Millisecond, "which counts from when the program began")
	q := node.leaseGate.beginPrefetch(at(here, 1), changing())
	q.came -= lease.Duration * 9 / 10
	require.NotNil(t, node.leaseGate.answerPrefetch(q, new(storepb.Result), yes))
	lasts, resigned := node.leaseGate.stop(node.leadership.term())
	require.True(t, resigned)
	require.LessOrEqual(t, lasts, lease.Duration/10)
}

// TestPrefetchLeavesOutAnswersThatWouldWait: nobody waits for more than the command.
func TestPrefetchLeavesOutAnswersThatWouldWait(t *testing.T) {
	node, here, there := leasing(t)
	q := node.leaseGate.beginPrefetch(at(here, 1), changing())
	_, granted := node.leaseGate.table.Grant(there, []ids.Inode{namespace.RootIno}, monotonic())
	require.True(t, granted)
	op := createOp("other")
	ctx := t.Context()
	told := make(chan error, 1)
	go func() {
		_, err := node.store.Propose(ctx, &storepb.Command{Op: op})
		told <- err
	}()
	require.Eventually(t, func() bool { return !node.leaseGate.table.All(1 << 40).IsOver() }, testWait, time.Millisecond)
	node.fsm.View(func(ns *namespace.Namespace) {
		require.Nil(t, node.leaseGate.answerLeasable(ns, getAttrOf(namespace.RootIno)))
	})
	require.Nil(t, node.leaseGate.answerPrefetch(q, &storepb.Result{}, yes))
	require.NoError(t, <-told)
	node.leaseGate.end()
	require.Nil(t, node.leaseGate.answerPrefetch(q, &storepb.Result{}, yes), "it gives no leases any more")
}
