package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// failingNode fails with each of some errors and does it then.
type failingNode struct {
	Node
	errs  []error
	asked int
}

func (n *failingNode) Execute(context.Context, *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	n.asked++
	if n.asked <= len(n.errs) {
		return nil, n.errs[n.asked-1]
	}
	return new(clusterpb.ExecuteReply), nil
}

func TestARouterAsksAgainUnlessItIsRefused(t *testing.T) {
	refused := &RefusedError{Result: &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: "not you"}}
	for _, final := range []error{refused, NoMethod, Malformed, Unsendable} {
		node := &failingNode{errs: []error{ErrUnreachable, Crowded, NeedsTLS, final}}
		_, err := Ask(t.Context(), NewRouter(NewPeers(nil), node), Node.Execute, new(clusterpb.ExecuteRequest))
		require.ErrorIs(t, err, final)
		require.Equal(t, 4, node.asked)
	}
	crowded := &failingNode{errs: []error{Crowded, Crowded, Crowded}}
	began := time.Now()
	_, err := Ask(t.Context(), NewRouter(NewPeers(nil), crowded), Node.Execute, new(clusterpb.ExecuteRequest))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), firstPause+2*firstPause+4*firstPause)
}
