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

// TestALostLeaderIsNotAwaited has a node learn of another leader while several calls wait for the one
// before. The node itself is still waited for: it answers as soon as it can.
func TestALostLeaderIsNotAwaited(t *testing.T) {
	const calls = 5
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	self, peers := new(failingNode), NewPeers(nil)
	r := NewRouter(peers, self)
	waits, results := make(chan Node), make(chan Node, calls+1)
	next := peers.Node("next:1")
	method := func(node Node, ctx context.Context, _ *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
		if node == next {
			return new(clusterpb.ExecuteReply), nil
		}
		waits <- node
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ask := func() (asked Node) {
		go func() {
			if _, err := Ask(ctx, r, method, new(clusterpb.ExecuteRequest)); err != nil {
				results <- nil
				return
			}
			results <- next
		}()
		return <-waits
	}
	require.Equal(t, Node(self), ask())
	r.SetLeader("lost:1")
	for range calls {
		require.Equal(t, peers.Node("lost:1"), ask())
	}
	r.SetLeader("next:1")
	for range calls {
		require.Equal(t, next, <-results)
	}
	cancel()
	require.Nil(t, <-results, "the node itself")
	require.Empty(t, r.attempts)
	r.SetLeader("")
	require.Equal(t, Node(self), r.leader)
}
