package setup

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
)

func TestWhetherAServerIsNeeded(t *testing.T) {
	dead := errors.New("dead")
	others := func(errs ...error) (nodes []cluster.NodeStatus) {
		for _, err := range errs {
			nodes = append(nodes, cluster.NodeStatus{Err: err})
		}
		return nodes
	}
	for _, enough := range [][]cluster.NodeStatus{others(nil), others(nil, nil), others(nil, nil, dead), others(nil, nil, nil, dead)} {
		require.NoError(t, enoughWithout(enough))
	}
	require.ErrorContains(t, enoughWithout(nil), "only server")
	for _, few := range [][]cluster.NodeStatus{others(dead), others(nil, dead), others(nil, dead, dead), others(nil, nil, dead, dead)} {
		require.ErrorContains(t, enoughWithout(few), "this server is needed")
	}
	require.Equal(t, "one server is left: it must not fail", describeRest(1))
	require.Equal(t, "2 servers are left: none of them may fail", describeRest(2))
	require.Equal(t, "4 servers are left, of which 1 may fail", describeRest(4))
}
