package cluster

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// rawCodec sends bytes as they are, under protobuf's name.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return "proto" }

var _ encoding.CodecV2 = rawCodec{}

// sendRaw sends bytes that claim to be a request.
func sendRaw(t testing.TB, node *Node, method string, data []byte) error {
	t.Helper()
	conn, err := dial(node.cfg.APIAddress)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	return conn.Invoke(t.Context(), method, data, new([]byte), grpc.ForceCodecV2(rawCodec{}))
}

func TestMalformedRequestsAreAnsweredAndCounted(t *testing.T) {
	node := startNodes(t, 1)[0]
	counted := func() float64 { return testutil.ToFloat64(node.cfg.Metrics.malformed) }
	for i, send := range []struct {
		what, method string
		data         []byte
		code         codes.Code
	}{
		{"no protobuf", clusterpb.Node_Execute_FullMethodName, []byte("\xff\xff\xff"), codes.Internal},
		{"too large", clusterpb.Node_Execute_FullMethodName, make([]byte, maxRequest+1), codes.ResourceExhausted},
		{"no such method", "/lockfs.cluster.Node/Nonsense", nil, codes.Unimplemented},
	} {
		require.Equal(t, send.code, status.Code(sendRaw(t, node, send.method, send.data)), send.what)
		require.Eventually(t, func() bool { return counted() == float64(i+1) }, testWait, time.Millisecond, send.what) // after it is answered
	}
	node.Execute(t.Context(), &clusterpb.ExecuteRequest{})
	require.Equal(t, 4.0, counted(), "an empty request")
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
	f.Fuzz(func(t *testing.T, data []byte) {
		req := new(clusterpb.ExecuteRequest)
		if proto.Unmarshal(data, req) != nil {
			return
		}
		require.NotNil(t, node.Execute(t.Context(), req))
		require.Equal(t, clusterpb.Outcome_DONE, node.Execute(t.Context(), statFs).GetOutcome(), "the node is still there")
	})
}
