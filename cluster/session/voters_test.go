package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
)

// replaced tells in its first answer to a keepalive of other voters than there are, and asks for the next one after a long time.
type replaced struct {
	server
	keepalives atomic.Int32
}

func (r *replaced) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	reply, err := r.server.KeepAlive(ctx, req)
	if err == nil {
		reply.Ttl = int64(time.Hour)
		if r.keepalives.Add(1) == 1 {
			reply.Voters++
		}
	}
	return reply, err
}

// TestOtherVotersAreLookedForAtOnce has a mount hear with the answer to a command that the voters are others than those that it knows: it
// asks who they are, once, and not when the next keepalive is due. Until then all that it knows could have been replaced.
func TestOtherVotersAreLookedForAtOnce(t *testing.T) {
	node := &replaced{server: startServers(t, 1)[0]}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		create(t, client, "lock") // what is answered before the first keepalive is, says nothing new
		return node.keepalives.Load() == 2
	}, testWait, time.Millisecond)
	for range 10 {
		create(t, client, "lock")
	}
	require.EqualValues(t, 2, node.keepalives.Load())
}
