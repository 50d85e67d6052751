package cluster

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func mutate(t testing.TB, client *session.Client, op *storepb.Op) {
	t.Helper()
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
}

// TestFollowerCatchesUpBySnapshot joins a node when the log has long been cut.
func TestFollowerCatchesUpBySnapshot(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 20
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	for i := range 100 {
		mutate(t, client, createOp(string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	takeSnapshot(t, node)
	mutate(t, client, createOp("after"))
	other := startNode(t, testConfig(t, "b", cfg.Address))
	mine := node.fsm.State()
	require.NoError(t, other.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() >= mine.Index() }))
	theirs := other.fsm.State()
	require.Equal(t, mine.Index(), theirs.Index())
	require.Equal(t, mine.Hash(), theirs.Hash())
	after, err := other.fsm.Query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte("after")},
	}})
	require.NoError(t, err)
	require.Equal(t, uint32(syscall.S_IFREG|0o644), after.GetAttr().GetMode())
}

// TestFollowerCatchesUpByLargeEntries joins a node that has more to be sent than goes into one request.
func TestFollowerCatchesUpByLargeEntries(t *testing.T) {
	t.Parallel()
	node := startNode(t, testConfig(t, "a"))
	client := openTestClient(t, node, "")
	for i := range 10 << 20 / namespace.MaxContent {
		op := createOp(fmt.Sprint(i))
		op.GetCreate().Content = make([]byte, namespace.MaxContent)
		mutate(t, client, op)
	}
	mine := node.fsm.State()
	other := startNode(t, testConfig(t, "b", node.cfg.Address))
	require.NoError(t, other.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() >= mine.Index() }))
	require.Equal(t, "0", other.raft.Stats()["last_snapshot_index"], "nothing but the log was sent")
	require.Eventually(t, func() bool { return node.fsm.State().Hash() == other.fsm.State().Hash() }, testWait, 50*time.Millisecond)
}
