package session_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
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

// late holds the answer to the first creation back for as long as it is waited for.
type late struct {
	server
	asked atomic.Bool
}

func (l *late) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply, err := l.server.Execute(ctx, req)
	if req.GetCommand().GetOp().GetCreate() != nil && l.asked.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return reply, err
}

// TestNothingIsRefusedWhileAnAnswerIsLate: until it is there, the cluster keeps the replies to all that came after it.
func TestNothingIsRefusedWhileAnAnswerIsLate(t *testing.T) {
	node := &late{server: startServers(t, 1)[0]}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	const workers, each = 16, 400
	var working sync.WaitGroup
	codes := make(chan storepb.Code, workers*each)
	for worker := range workers {
		working.Go(func() {
			for i := range each {
				result, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(fmt.Sprintf("%d-%d", worker, i)))
				if err != nil {
					codes <- storepb.Code_CANCELLED
					continue
				}
				codes <- result.GetCode()
			}
		})
	}
	working.Wait()
	close(codes)
	for code := range codes {
		require.Equal(t, storepb.Code_OK, code)
	}
	require.Greater(t, workers*each, namespace.MaxReplies)
}

// full has no room for the reply to the first creation.
type full struct {
	server
	asked atomic.Bool
}

func (f *full) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetCommand().GetOp().GetCreate() != nil && f.asked.CompareAndSwap(false, true) {
		return &clusterpb.ExecuteReply{Result: &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS}}, nil
	}
	return f.server.Execute(ctx, req)
}

// TestAFullClusterIsAnError, as whoever has to say something says it again after one, and takes a result for an answer.
func TestAFullClusterIsAnError(t *testing.T) {
	node := &full{server: startServers(t, 1)[0]}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	_, err = client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	require.Error(t, err)
	require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, client, "lock"))
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
}

func TestARefusalCancelsNothing(t *testing.T) {
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
