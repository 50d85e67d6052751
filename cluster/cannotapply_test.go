package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// requireStopsAt requires that a node ends with an entry, says how to go on, and answers nothing any more.
func requireStopsAt(t *testing.T, node *Node, index uint64, why error) {
	t.Helper()
	err := <-node.Failed()
	stopped := new(raftstore.ApplyError)
	require.ErrorAs(t, err, &stopped)
	require.ErrorIs(t, err, why)
	require.Equal(t, index, stopped.Index)
	require.ErrorContains(t, err, fmt.Sprintf("`lockfs server inspect --data %s %d` shows the entry", node.cfg.DataDir, index))
	_, err = node.query(t.Context(), statFs.GetQuery(), true)
	require.ErrorIs(t, err, stopped)
	require.ErrorIs(t, err, raftstore.ErrNotDone)
	_, err = node.store.Propose(t.Context(), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
	require.ErrorIs(t, err, raftstore.ErrUnknown)
	require.NotNil(t, node.Status(true))
	require.Error(t, node.raft.Snapshot().Error(), "it would stand for entries that were not applied")
}

func TestNodeStopsAtAnEntryThatCannotBeRead(t *testing.T) {
	node := startNode(t, testConfig(t, "a"))
	future := node.raft.Apply([]byte("no command"), 0)
	require.NoError(t, future.Error())
	requireStopsAt(t, node, future.Index(), raftstore.ErrCorrupt)
}
