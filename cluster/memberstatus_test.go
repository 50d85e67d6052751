package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// TestStatusOfAMemberThatOnlyOthersReach: a host sees every member that another server reaches.
func TestStatusOfAMemberThatOnlyOthersReach(t *testing.T) {
	t.Parallel()
	c := startCutCluster(t, 3)
	leader := leaderOf(t, c.nodes)
	web, _ := join(t, leader, "web1")
	network := newCutNetwork()
	mount := mountAt(t, web, network)
	security := mount.keeper.Security()
	security.Network = network
	relay := NewProxy("web1", web.Servers(), security, quietLogger())
	defer relay.Close()
	cut := c.others(leader)[0]
	onServer := cut.Proxy()
	network.set(leader.cfg.Advertise, true)
	c.setCut(cut, leader, true)

	for name, asked := range map[string]*Proxy{"mount": relay, "server": onServer} {
		ctx, cancel := context.WithTimeout(asUser(t, 1000), rpc.AttemptTimeout)
		reply, err := asked.InProcess().Status(ctx, &clusterpb.StatusRequest{Member: leader.dir.ID})
		cancel()
		require.NoError(t, err, name)
		require.Equal(t, leader.dir.ID, reply.GetId(), name)
		_, err = asked.InProcess().Status(asUser(t, 1000), &clusterpb.StatusRequest{Member: leader.dir.ID, Hash: true})
		require.ErrorContains(t, err, "uid 1000 may not ask for "+costlyStatus, name)
	}
	// The other server asks with its own rights only for what the caller has a right to.
	security.Network = nil
	remote := rpc.NewClient(c.others(leader)[1].cfg.Advertise, security)
	defer remote.Close()
	_, err := remote.Status(t.Context(), &clusterpb.StatusRequest{Member: leader.dir.ID, Hash: true})
	refused := new(rpc.RefusedError)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, storepb.Code_NOT_PERMITTED, refused.Code())
	_, err = remote.Status(t.Context(), &clusterpb.StatusRequest{Member: "nobody"})
	require.ErrorIs(t, err, rpc.NotForwarded)
}

func TestStatusFailsWithTheErrorOfTheMember(t *testing.T) {
	t.Parallel()
	gone, other := rpc.NewClient("127.0.0.1:1", nil), rpc.NewClient("127.0.0.1:2", nil)
	defer gone.Close()
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := statusOfMember(ctx, gone, "a", []rpc.Node{other}, new(clusterpb.StatusRequest))
	require.ErrorContains(t, err, "127.0.0.1:1")
	_, err = statusOfMember(ctx, gone, "a", nil, new(clusterpb.StatusRequest))
	require.ErrorContains(t, err, "127.0.0.1:1")
}
