package admin

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
)

func TestCatchingUp(t *testing.T) {
	node := func(name string, status *clusterpb.StatusReply) cluster.NodeStatus {
		return cluster.NodeStatus{Name: name, ID: "id-" + name, Status: status}
	}
	deposed := node("a", &clusterpb.StatusReply{State: "leader", Term: 2, CommitIndex: 7})
	leader := node("b", &clusterpb.StatusReply{State: "leader", Term: 3, CommitIndex: 100})
	behind := node("c", &clusterpb.StatusReply{State: "follower", Term: 3, AppliedIndex: 40})
	silent := cluster.NodeStatus{Name: "d", Err: errors.New("unreachable")}
	nodes := []cluster.NodeStatus{leader, deposed, behind, silent}
	require.Equal(t, "c is catching up: it has applied entry 40 of 100", catchingUp("c", nodes, nil))
	require.Equal(t, "id-c is catching up: it has applied entry 40 of 100", catchingUp("id-c", nodes, nil))
	require.Equal(t, "waiting for a reply from d", catchingUp("d", nodes, nil))
	require.Equal(t, "waiting for a reply from e", catchingUp("e", nodes, nil))
	require.Equal(t, "waiting for the cluster's reply", catchingUp("c", []cluster.NodeStatus{behind}, nil))
	require.Equal(t, "waiting for the cluster's reply", catchingUp("c", nil, errors.New("no server answers")))
}
