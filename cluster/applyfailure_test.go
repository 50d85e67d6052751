package cluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// requireStopsAt requires that a node ends with an entry, says how to go on, and answers nothing any more.
func requireStopsAt(t *testing.T, node *Node, index uint64, why error) {
	t.Helper()
	err := <-node.Failed()
	stopped := new(raftstore.ApplyError)
	require.ErrorAs(t, err, &stopped)
	require.ErrorIs(t, err, why)
	require.Equal(t, ids.Index(index), stopped.Index)
	require.ErrorContains(t, err, fmt.Sprintf("`lockfs server inspect --data %s %d` shows the entry", node.cfg.DataDir, index))
	_, _, err = node.query(t.Context(), node.leadership.term(), statFs.GetQuery(), true, lease.Request{})
	require.ErrorIs(t, err, stopped)
	require.ErrorIs(t, err, raftstore.ErrNotDone)
	_, err = node.store.Propose(t.Context(), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
	require.ErrorIs(t, err, raftstore.ErrUnknown)
	require.NotNil(t, ask(t, node, rpc.Node.Status, &clusterpb.StatusRequest{Hash: true}))
	require.Error(t, node.raft.Snapshot().Error(), "it would stand for entries that were not applied")
}

func TestNodeStopsAtAnEntryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	node := startNode(t, testConfig(t, "a"))
	future := node.raft.Apply([]byte("no command"), 0)
	require.NoError(t, future.Error())
	requireStopsAt(t, node, future.Index(), codec.ErrCorrupt)
}

// newerCommand has an operation that this program does not know.
func newerCommand(session, seq uint64) *storepb.Command {
	cmd := &storepb.Command{Session: session, Seq: seq, Op: new(storepb.Op)}
	cmd.GetOp().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 400, protowire.VarintType), 1))
	return cmd
}

// TestNodeStopsAtANewerCommand has one in the log, where a newer leader has put it: the node stops there,
// and again when it is started.
func TestNodeStopsAtANewerCommand(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "a")
	node := startNode(t, cfg)
	data, err := codec.EncodeCommand(newerCommand(1, 1))
	require.NoError(t, err)
	future := node.raft.Apply(data, 0)
	require.NoError(t, future.Error())
	requireStopsAt(t, node, future.Index(), codec.ErrNewer)
	require.NoError(t, node.Close())
	found, err := consensus.Inspect(cfg.DataDir)
	require.NoError(t, err)
	entry, err := found.Entry(ids.Index(future.Index()))
	require.NoError(t, err)
	require.Equal(t, []int{400}, codec.UnknownFields(entry.Command.GetOp().ProtoReflect()))

	node, err = Open(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	requireStopsAt(t, node, future.Index(), codec.ErrNewer)
}

// TestNewerMountsAreNotServed has a mount ask for what its leader does not know: nothing of that is in
// the log, and another leader may know it.
func TestNewerMountsAreNotServed(t *testing.T) {
	t.Parallel()
	node := startNode(t, testConfig(t, "a"))
	client := openTestClient(t, node, "")
	require.Equal(t, storepb.Code_OK, create(t, client, "a"))
	last := node.raft.LastIndex()
	for range 2 {
		reply := ask(t, node, rpc.Node.Execute, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: newerCommand(1, 1)}})
		require.Equal(t, clusterpb.Outcome_NOT_DONE, reply.GetOutcome())
	}
	require.Equal(t, last, node.raft.LastIndex())
	require.Equal(t, 2.0, testutil.ToFloat64(node.cfg.Metrics.malformed))
	require.Equal(t, storepb.Code_OK, create(t, client, "b"))
}

// TestALeaderThatCannotApplyIsSucceeded has its process take as long to end as it likes.
func TestALeaderThatCannotApplyIsSucceeded(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	leader.onApplyFailure(&raftstore.ApplyError{Index: 1, Err: codec.ErrCorrupt})
	require.Zero(t, leader.leadership.term())
	client := openTestClient(t, leaderOf(t, others), "")
	require.Equal(t, storepb.Code_OK, create(t, client, "a"))
}

// TestANodeThatCannotGoOnWaitsForNoSession has one without a majority fail while its first session is to
// be opened.
func TestANodeThatCannotGoOnWaitsForNoSession(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	require.NoError(t, nodes[1].Close())
	require.Eventually(t, func() bool { return nodes[0].leadership.term() == 0 }, testWait, time.Millisecond)
	opened := make(chan error, 1)
	go func() {
		_, err := nodes[0].OpenClient(t.Context(), session.Config{Host: "h", Logger: quietLogger()})
		opened <- err
	}()
	why := errors.New("the disk hangs")
	nodes[0].fail(why)
	select {
	case err := <-opened:
		require.ErrorIs(t, err, why)
	case <-time.After(testWait):
		t.Fatal("it goes on waiting")
	}
}
