package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
)

// encounterInterval is how often a server that starts looks for the others.
const encounterInterval = 500 * time.Millisecond

// hasMoved tells whether the cluster has another address of this node than it has now, as far as it knows.
func (n *Node) hasMoved() bool {
	known := n.raft.Server(n.dir.ID)
	return n.dir.Joined && n.cfg.Address != "" && known != nil &&
		(string(known.Address) != n.dir.Address || n.members.get(n.dir.ID).GetAddress() != n.dir.Address)
}

// findOthers tells the others where this node is now, and finds out where those are that it was given addresses of, until ctx ends.
// Whoever leads writes it down; where nobody can lead before enough have found each other, each remembers whom it has met where.
func (n *Node) findOthers(ctx context.Context) {
	for {
		var asking sync.WaitGroup
		for address := range n.whereOthersMayBe() {
			asking.Go(func() { n.encounter(ctx, address) })
		}
		asking.Wait()
		if pause.For(ctx, encounterInterval) != nil {
			return
		}
	}
}

func (n *Node) whereOthersMayBe() map[string]bool {
	addresses := make(map[string]bool)
	for _, address := range n.cfg.Join {
		addresses[address] = true
	}
	for _, server := range n.raft.Servers() {
		addresses[string(server.Address)] = true
		addresses[n.members.address(string(server.ID))] = true
	}
	delete(addresses, "")
	delete(addresses, n.dir.Address)
	return addresses
}

// encounter asks at an address who is there, and says where this node is.
func (n *Node) encounter(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	there := n.peers.Node(address)
	reply, err := there.Probe(ctx, new(clusterpb.ProbeRequest))
	if err != nil || reply.GetId() == n.dir.ID {
		return
	}
	known := n.raft.Server(reply.GetId())
	if known == nil {
		return // of another cluster, or it has joined since
	}
	if string(known.Address) != address {
		n.members.addressBook.Meet(*known, raft.ServerAddress(address))
	}
	if _, leader := n.raft.LeaderWithID(); leader != "" && !n.hasMoved() {
		return
	}
	if joined, err := there.Join(ctx, &clusterpb.JoinRequest{
		Member: n.members.own(), Cluster: n.dir.ClusterID(), Again: true,
	}); err == nil && joined.GetResult().GetMessage() != "" {
		n.logger.Warn("this node's new address is not written down yet", "by", address, "reason", joined.GetResult().GetMessage())
	}
}
