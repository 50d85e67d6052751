package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// crossing is a node that is asked for a keepalive once it has done a farewell.
type crossing struct {
	rpc.Node
	client *Client
}

func (n *crossing) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply, err := n.Node.Execute(ctx, req)
	if req.GetCommand().GetOp().GetCloseSession() != nil {
		n.client.hurry()
		time.Sleep(100 * time.Millisecond)
	}
	return reply, err
}

func TestAFarewellIsTheLastThingThatIsSaid(t *testing.T) {
	node := startNodes(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	n := &crossing{Node: node}
	via := rpc.NewRouter(node.peers, n)
	client, err := openClient(ctx, node, via, nil, ClientConfig{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	n.client = client
	require.NoError(t, client.Close(ctx))
	require.Empty(t, node.sessions.live())
}
