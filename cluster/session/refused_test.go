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
)

// refusing does the creation of a name and says that it refuses it, as one may after an earlier attempt that was done. So often
// it does not tell what became of it either.
type refusing struct {
	server
	creations, settlings atomic.Int32 // that are still to be refused
}

func (r *refusing) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	refused := &rpc.RefusedError{Result: &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: "not now"}}
	op := req.GetCommand().GetOp()
	if op.GetCancel() != nil && r.settlings.Add(-1) >= 0 {
		return nil, refused
	}
	reply, err := r.server.Execute(ctx, req)
	if op.GetCreate() != nil && r.creations.Add(-1) >= 0 {
		return nil, refused
	}
	return reply, err
}

func TestARefusalSettlesNothing(t *testing.T) {
	node := &refusing{server: startServers(t, 1)[0]}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	node.creations.Store(1)
	node.settlings.Store(2)
	refused := new(rpc.RefusedError)
	_, err = client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	require.ErrorAs(t, err, &refused, "at once")
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode(), "what was refused left its name")
	require.Less(t, node.settlings.Load(), int32(0), "it was asked until it was told")
}
