package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// scriptedNode answers what a test wants it to.
type scriptedNode struct {
	rpc.Node
	execute func(*clusterpb.ExecuteRequest) *clusterpb.ExecuteReply
	probe   func() (*clusterpb.ProbeReply, error)
}

func (s *scriptedNode) Execute(_ context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return s.execute(req), nil
}

func (s *scriptedNode) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return s.probe()
}

// TestProbedVoterMustBeInTheLeadersTerm has a leader in term 3 leave the confirmation to the client.
func TestProbedVoterMustBeInTheLeadersTerm(t *testing.T) {
	leader := &scriptedNode{execute: func(req *clusterpb.ExecuteRequest) *clusterpb.ExecuteReply {
		if req.GetProbed() == "v" {
			return &clusterpb.ExecuteReply{Result: &storepb.Result{Message: "unconfirmed"}, Term: 3}
		}
		return &clusterpb.ExecuteReply{Result: &storepb.Result{Message: "confirmed"}}
	}}
	for name, c := range map[string]struct {
		word    *clusterpb.ProbeReply
		failure error
		want    string
	}{
		"the same term":     {&clusterpb.ProbeReply{Id: "v", Term: 3}, nil, "unconfirmed"},
		"a newer one":       {&clusterpb.ProbeReply{Id: "v", Term: 4}, nil, "confirmed"},
		"another node":      {&clusterpb.ProbeReply{Id: "w", Term: 3}, nil, "confirmed"},
		"the leader itself": {&clusterpb.ProbeReply{Id: "v", Term: 3, Leads: true}, nil, "confirmed"},
		"no answer":         {nil, context.DeadlineExceeded, "confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			voter := &scriptedNode{probe: func() (*clusterpb.ProbeReply, error) { return c.word, c.failure }}
			client := &Client{router: rpc.NewRouter(nil, leader), active: newActiveSession(), cluster: new(clusterBinding), timeout: time.Minute}
			client.voterProbe.node, client.voterProbe.id = voter, "v"
			result, err := client.Query(t.Context(), &storepb.Query{})
			require.NoError(t, err)
			require.Equal(t, c.want, result.GetMessage())
			require.Equal(t, c.want == "confirmed", client.voterProbe.node == nil, "it was no help")
		})
	}
}
