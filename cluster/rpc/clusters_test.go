package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
)

func TestServersOfTwoClustersAreTold(t *testing.T) {
	status := func(id string, earlier ...string) *clusterpb.StatusReply {
		return &clusterpb.StatusReply{Cluster: id, EarlierClusters: earlier}
	}
	var c Clusters
	id, err := c.Only()
	require.NoError(t, err)
	require.Empty(t, id)
	c.Add("n4:7420", status(""))
	c.Add("n3:7420", status("b"))
	c.Add("n2:7420", status("b"))
	c.Add("n2:7420", status("b"))
	id, err = c.Only()
	require.NoError(t, err)
	require.Equal(t, "b", id)

	c.Add("n1:7420", status("a"))
	_, err = c.Only()
	require.ErrorContains(t, err, "the servers belong to 2 clusters, and a lock of one is free in the other: n1:7420 to cluster a; n2:7420, n3:7420 to cluster b. ")

	c.Add("n5:7420", status("c", "a", "b"))
	id, err = c.Only()
	require.NoError(t, err, "c was recovered from both, at first and second hand")
	require.Equal(t, "c", id)
	require.Equal(t, []string{"n2:7420", "n3:7420"}, c.ByID()["b"])
}
