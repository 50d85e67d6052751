package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"lockfs/cluster/clusterpb"
)

// crossing is a node that is asked for a keepalive once it has done a farewell.
type crossing struct {
	localClient
	client *Client
}

func (n *crossing) Execute(ctx context.Context, req *clusterpb.ExecuteRequest, options ...grpc.CallOption) (*clusterpb.ExecuteReply, error) {
	reply, err := n.localClient.Execute(ctx, req, options...)
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
	n := &crossing{localClient: node.local().(localClient)}
	via := &router{peers: node.peers, entry: []clusterpb.NodeClient{n}}
	client, err := openClient(ctx, node, via, nil, ClientConfig{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	n.client = client
	require.NoError(t, client.Close(ctx))
	require.Empty(t, node.sessions.live())
}
