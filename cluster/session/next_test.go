//go:build next

package session_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
	"lockfs/test/mutants/mutant"
)

// asked counts the requests for parts of the next version.
type asked struct {
	server
	notes atomic.Int32
}

func (a *asked) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetQuery().GetGetNote() != nil || req.GetCommand().GetOp().GetSetNote() != nil {
		a.notes.Add(1)
	}
	return a.server.Execute(ctx, req)
}

// TestNextPartsAreNotSent has a client that knows the next version, and a server that knows the first alone.
func TestNextPartsAreNotSent(t *testing.T) {
	t.Setenv(mutant.OnlyFirstVariable, "1")
	servers := startServers(t, 1)
	node := &asked{server: servers[0]}
	require.EqualValues(t, 1, status(t, servers[0]).GetClusterVersion())
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_GetNote{GetNote: &storepb.GetNote{}}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_UNSUPPORTED, result.GetCode())
	require.Contains(t, result.GetMessage(), "not all servers and mounts of the cluster know it yet")
	result, err = client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_SetNote{SetNote: &storepb.SetNote{Text: "t"}}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_UNSUPPORTED, result.GetCode())
	require.Zero(t, node.notes.Load())
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"), "what is known goes on")
}
