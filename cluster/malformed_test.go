package cluster

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
	"lockfs/test/fuzzing"
)

func TestMalformedRequestsAreAnsweredAndCounted(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	counted := func() float64 { return testutil.ToFloat64(node.cfg.Metrics.malformed) }
	caller := rpc.NewChannel(node.cfg.Address, nil)
	defer caller.Close()
	const execute = 0
	send := func(method byte, text string) error {
		return caller.Call(t.Context(), method, &wrapperspb.StringValue{Value: text}, new(clusterpb.ExecuteReply))
	}
	require.ErrorIs(t, send(execute, "no command"), rpc.Malformed)
	require.ErrorIs(t, send(execute, strings.Repeat("x", rpc.MaxRequest+1)), rpc.Unsendable)
	require.ErrorIs(t, send(99, ""), rpc.NoMethod)
	require.Equal(t, 2.0, counted(), "what is too large was not sent")
	ask(t, node, rpc.Node.Execute, &clusterpb.ExecuteRequest{})
	require.Equal(t, 3.0, counted(), "an empty request")
	require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, node, ""), "lock"))
}

func FuzzExecute(f *testing.F) {
	node := startNodes(f, 1)[0]
	const session = 1
	open := &storepb.Command{Session: session, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{}}}}
	for _, req := range []*clusterpb.ExecuteRequest{
		{Request: &clusterpb.ExecuteRequest_Command{Command: open}},
		{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Session: session, Seq: 1, Op: createOp("lock")}}},
		{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Session: session, Seq: 2, Op: &storepb.Op{}}}},
		{Request: &clusterpb.ExecuteRequest_Query{Query: &storepb.Query{Query: &storepb.Query_ReadDir{}}}},
		statFs,
	} {
		data, err := proto.Marshal(req)
		require.NoError(f, err)
		f.Add(data)
	}
	fuzzing.Run(f, func(t *testing.T, data []byte) {
		req := new(clusterpb.ExecuteRequest)
		if proto.Unmarshal(data, req) != nil {
			return
		}
		require.NotNil(t, ask(t, node, rpc.Node.Execute, req))
		require.Equal(t, clusterpb.Outcome_DONE, ask(t, node, rpc.Node.Execute, statFs).GetOutcome(), "the node is still there")
	})
}
