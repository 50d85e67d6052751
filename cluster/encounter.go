package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
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

// isLost reports whether this server hears of no leader, the cluster has it elsewhere, or it leads and a member does not answer: that one
// may have moved, and another server may have met it.
func (n *Node) isLost() bool {
	leader, _ := n.members.leader()
	return leader == "" || n.hasMoved() || len(n.vigil.silences()) > 0
}

// beFound has this server find the others whenever it is lost, until ctx ends: a leader may have taken its address away, and be gone
// before it wrote the next one down (moves.writeDown).
func (n *Node) beFound(ctx context.Context) {
	for pause.For(ctx, lostInterval) == nil {
		if n.dir.HasJoined() && n.cfg.Address != "" && n.isLost() {
			there := n.whoIsWhere(ctx)
			n.remember(there)
			if n.leadership.term() == 0 {
				n.tellAll(ctx, there)
			}
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

// mostAsked bounds the addresses that one search asks, for each server of the cluster.
const mostAsked = 8

// search asks the servers of a cluster where the others are: each answer may name addresses that are asked next. An address that is out
// of date does no harm, because only a server that answers there itself is found there.
type search struct {
	ask  func(address string) (*clusterpb.ProbeReply, error)
	most int

	mu     sync.Mutex
	asked  map[string]bool
	there  map[string]raft.ServerID
	visits sync.WaitGroup
}

func (s *search) visit(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[address] || len(s.asked) >= s.most {
		return
	}
	s.asked[address] = true
	s.visits.Go(func() {
		reply, err := s.ask(address)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.there[address] = raft.ServerID(reply.GetId())
		s.mu.Unlock()
		for _, known := range reply.GetAddresses() {
			s.visit(known.GetAddress())
		}
	})
}

// whoIsWhere asks the servers of the cluster for each other, and returns the id of the server at each address that answers.
func (n *Node) whoIsWhere(ctx context.Context) map[string]raft.ServerID {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	first := n.whereOthersMayBe()
	s := &search{
		most: len(first) + mostAsked*len(n.raft.Servers()), asked: map[string]bool{"": true, n.dir.Address: true},
		there: make(map[string]raft.ServerID),
		ask: func(address string) (*clusterpb.ProbeReply, error) {
			reply, err := n.peers.Node(address).Probe(ctx, &clusterpb.ProbeRequest{Addresses: true})
			if err == nil && (reply.GetId() == n.dir.ID || n.raft.Server(reply.GetId()) == nil || reply.GetCluster() != n.dir.ClusterID()) {
				err = fmt.Errorf("at %s answers %q, which is no other server of this cluster", address, reply.GetId()) // or has joined since
			}
			if err != nil {
				return nil, err
			}
			return reply, n.instances.follow(ctx, raft.ServerID(reply.GetId()), raft.ServerAddress(address), ids.Instance(reply.GetInstance()))
		},
	}
	for address := range first {
		s.visit(address)
	}
	s.visits.Wait()
	return s.there
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
	_, leader := n.members.leader()
	addresses[leader] = true
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

// tellAddress tells the server at an address where this node is, and then the leader that this server names, which may be where this node
// knows of no server.
func (n *Node) tellAddress(ctx context.Context, address string) {
	for told := make(map[string]bool); address != "" && len(told) < mostTold && !told[address]; {
		told[address] = true
		address = n.tellOne(ctx, address)
	}
}

// mostTold bounds how many servers are told one after the other: servers may name each other as the leader.
const mostTold = 3

// tellOne returns the address of the leader if the server does not lead.
func (n *Node) tellOne(ctx context.Context, address string) (leader string) {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	request := &clusterpb.JoinRequest{Member: n.members.own(), Cluster: n.dir.ClusterID(), Again: true, Process: n.instances.own()}
	reply, err := n.peers.Node(address).Join(ctx, request)
	if err != nil {
		return ""
	}
	if follows := reply.GetFollows(); follows != 0 && ids.Instance(follows) != n.dir.Instance() {
		n.replaced(fmt.Errorf("%w: %s", errReplaced, reply.GetResult().GetMessage()))
		return ""
	}
	if reply.GetResult().GetMessage() != "" {
		n.logger.Warn("this node's address is not written down yet", "by", address, "reason", reply.GetResult().GetMessage())
	}
	if reply.GetOutcome() == clusterpb.Outcome_NOT_LEADER {
		return reply.GetLeaderAddress()
	}
	return ""
}
