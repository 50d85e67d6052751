package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestServersAndMountsComeInWithTokens(t *testing.T) {
	nodes := startSecureNodes(t, 3)
	web, _ := join(t, nodes[0], "web1")
	mount := mountAt(t, web)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	for _, node := range nodes {
		require.Equal(t, storepb.Code_EXISTS, create(t, openNodeClient(t, node), "lock"))
	}
}
