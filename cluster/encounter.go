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

const (
	encounterInterval = 500 * time.Millisecond // between looks of a server that starts for the others
	lostInterval      = 5 * time.Second        // and of one that has been ready
)

// hasMoved tells whether the cluster has another address of this node than it has now, as far as it knows.
func (n *Node) hasMoved() bool {
	known := n.raft.Server(n.dir.ID)
	return n.dir.HasJoined() && n.cfg.Address != "" && known != nil &&
		(string(known.Address) != n.dir.Address || n.members.get(n.dir.ID).GetAddress() != n.dir.Address)
}

// findOthers tells the others where this node is now, and finds out where those are that it was given addresses of, until ctx ends.
// Whoever leads writes it down; where nobody can lead before enough have found each other, each remembers whom it has met where.
func (n *Node) findOthers(ctx context.Context) {
	for {
		there := n.whoIsWhere(ctx)
		n.remember(there)
		if n.isLost() {
			n.tellAll(ctx, there)
		}
		if pause.For(ctx, encounterInterval) != nil {
			return
		}
	}
}

// isLost tells whether this server hears of no leader, or the cluster has it elsewhere.
func (n *Node) isLost() bool {
	leader, _ := n.members.leader()
	return leader == "" || n.hasMoved()
}

// beFound has this server find the others whenever it is lost, until ctx ends: a leader may have taken its address away, and be gone
// before it wrote the next one down (moves.writeDown).
func (n *Node) beFound(ctx context.Context) {
	for pause.For(ctx, lostInterval) == nil {
		if n.dir.HasJoined() && n.cfg.Address != "" && n.isLost() {
			there := n.whoIsWhere(ctx)
			n.remember(there)
			n.tellAll(ctx, there)
		}
	}
}

func (n *Node) tellAll(ctx context.Context, there map[string]raft.ServerID) {
	var telling sync.WaitGroup
	for address := range there {
		telling.Go(func() { n.tellAddress(ctx, address) })
	}
	telling.Wait()
}

// whoIsWhere asks at the addresses of others, and answers the id of each member that is there.
func (n *Node) whoIsWhere(ctx context.Context) map[string]raft.ServerID {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	var mu sync.Mutex
	there := make(map[string]raft.ServerID)
	var asking sync.WaitGroup
	for address := range n.whereOthersMayBe() {
		asking.Go(func() {
			reply, err := n.peers.Node(address).Probe(ctx, new(clusterpb.ProbeRequest))
			if err != nil || reply.GetId() == n.dir.ID || n.raft.Server(reply.GetId()) == nil {
				return // one that is not known may be of another cluster, or have joined since
			}
			mu.Lock()
			defer mu.Unlock()
			there[address] = raft.ServerID(reply.GetId())
		})
	}
	asking.Wait()
	return there
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

// remember notes who was met elsewhere than the configuration has him, and not there: a server may have several addresses.
func (n *Node) remember(there map[string]raft.ServerID) {
	for address, id := range there {
		if known := n.raft.Server(string(id)); known != nil && there[string(known.Address)] != id {
			n.members.addressBook.Meet(*known, raft.ServerAddress(address))
		}
	}
}

// tellAddress says to who is at an address where this node is.
func (n *Node) tellAddress(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	request := &clusterpb.JoinRequest{Member: n.members.own(), Cluster: n.dir.ClusterID(), Again: true}
	reply, err := n.peers.Node(address).Join(ctx, request)
	if err == nil && reply.GetResult().GetMessage() != "" {
		n.logger.Warn("this node's address is not written down yet", "by", address, "reason", reply.GetResult().GetMessage())
	}
}
