package session_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// asked counts what it is asked of the second version.
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

// TestNothingIsSentBeforeItsVersion has a client that knows the second version, and a cluster that has a member of the first.
func TestNothingIsSentBeforeItsVersion(t *testing.T) {
	servers := startServers(t, 1)
	node := &asked{server: servers[0]}
	require.EqualValues(t, 1, status(t, servers[0]).GetClusterVersion())
	both := version.Range{Oldest: 1, Newest: 2}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Versions: both, Logger: quietLogger()})
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

// TestAProgramThatDoesNotFitIsToldBeforeItTakesAnythingOver has a client of later versions.
func TestAProgramThatDoesNotFitIsToldBeforeItTakesAnythingOver(t *testing.T) {
	servers := startServers(t, 1)
	_, err := session.Dial(t.Context(), []string{servers[0].address}, session.Config{
		Host: "h", OpTimeout: testWait, Versions: version.Range{Oldest: 3, Newest: 4}, Logger: quietLogger(),
	})
	require.ErrorIs(t, err, codec.ErrOlder)
	require.ErrorContains(t, err, "this program knows 3 to 4")
	require.Empty(t, servers[0].sessions(t))
}

func status(t testing.TB, s server) *clusterpb.StatusReply {
	t.Helper()
	reply, err := s.Status(t.Context(), &clusterpb.StatusRequest{})
	require.NoError(t, err)
	return reply
}
