package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// TestProbedVoterFails has a client read on while the voter that it asks is gone.
func TestProbedVoterFails(t *testing.T) {
	nodes := startServers(t, 3)
	var servers []string
	for _, node := range nodes {
		servers = append(servers, node.address)
	}
	client, err := session.Dial(t.Context(), servers, session.Config{Host: "guest", Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	read := func() (probed string) {
		result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_StatFs{StatFs: new(storepb.StatFs)}}) // of which there are no leases
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
		return client.Probed()
	}
	first := ""
	require.Eventually(t, func() bool { first = read(); return first != "" }, testWait, time.Millisecond)
	for _, node := range nodes {
		if id, _, _ := node.TermReport(); id == first {
			require.NotEqual(t, node, nodes[0], "that one leads")
			require.NoError(t, node.Close())
		}
	}
	require.Eventually(t, func() bool { id := read(); return id != "" && id != first }, testWait, time.Millisecond)
}
