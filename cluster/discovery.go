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
	discoveryInterval   = 500 * time.Millisecond // between looks of a server that starts for the others
	rediscoveryInterval = 5 * time.Second        // and of one that has been ready
)

// hasMoved tells whether the cluster has another address of this node than it has now, as far as it knows.
func (n *Node) hasMoved() bool {
	known := n.raft.Server(n.dir.ID)
	return n.dir.HasJoined() && n.cfg.Address != "" && known != nil &&
		(string(known.Address) != n.dir.Address || n.members.get(n.dir.ID).GetAddress() != n.dir.Address)
}

// discoverPeers tells the others where this node is now, and finds out where those are that it was given addresses of, until ctx ends.
// Whoever leads writes it down; where nobody can lead before enough have found each other, each remembers whom it has met where.
func (n *Node) discoverPeers(ctx context.Context) {
	for {
		there := n.probeAddresses(ctx)
		n.learnAddresses(there)
		if n.hasNoLeader() {
			n.announceAll(ctx, there)
		}
		if pause.For(ctx, discoveryInterval) != nil {
			return
		}
	}
}

// hasNoLeader reports whether this server hears of no leader, the cluster has it elsewhere, or it leads and a member does not answer: that one
// may have moved, and another server may have met it.
func (n *Node) hasNoLeader() bool {
	leader, _ := n.members.leader()
	return leader == "" || n.hasMoved() || len(n.failureDetector.unreachable()) > 0
}

// rediscover has this server find the others whenever it is lost, until ctx ends: a leader may have taken its address away, and be gone
// before it wrote the next one down (addressBook.commit).
func (n *Node) rediscover(ctx context.Context) {
	for pause.For(ctx, rediscoveryInterval) == nil {
		if n.dir.HasJoined() && n.cfg.Address != "" && n.hasNoLeader() {
			there := n.probeAddresses(ctx)
			n.learnAddresses(there)
			if n.leadership.term() == 0 {
				n.announceAll(ctx, there)
			}
		}
	}
}

func (n *Node) announceAll(ctx context.Context, there map[string]raft.ServerID) {
	var telling sync.WaitGroup
	for address := range there {
		telling.Go(func() { n.announceAddress(ctx, address) })
	}
	telling.Wait()
}

// maxProbedPerServer bounds the addresses that one search asks, for each server of the cluster.
const maxProbedPerServer = 8

// search asks the servers of a cluster where the others are: each answer may name addresses that are asked next. An address that is out
// of date does no harm, because only a server that answers there itself is found there.
type search struct {
	ask  func(address string) (*clusterpb.ProbeReply, error)
	most int

	mu     sync.Mutex
	asked  map[string]bool
	found  map[string]raft.ServerID
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
		s.found[address] = raft.ServerID(reply.GetId())
		s.mu.Unlock()
		for _, known := range reply.GetAddresses() {
			s.visit(known.GetAddress())
		}
	})
}

// probeAddresses asks the servers of the cluster for each other, and returns the id of the server at each address that answers.
func (n *Node) probeAddresses(ctx context.Context) map[string]raft.ServerID {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	first := n.knownAddresses()
	s := &search{
		most: len(first) + maxProbedPerServer*len(n.raft.Servers()), asked: map[string]bool{"": true, n.dir.Address: true},
		found: make(map[string]raft.ServerID),
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
	return s.found
}

func (n *Node) knownAddresses() map[string]bool {
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

// learnAddresses notes who was met elsewhere than the configuration has him, and not there: a server may have several addresses.
func (n *Node) learnAddresses(there map[string]raft.ServerID) {
	for address, id := range there {
		if known := n.raft.Server(string(id)); known != nil && there[string(known.Address)] != id {
			n.members.learnedAddresses.Learn(*known, raft.ServerAddress(address))
		}
	}
}

// announceAddress tells the server at an address where this node is, and then the leader that this server names, which may be where this node
// knows of no server.
func (n *Node) announceAddress(ctx context.Context, address string) {
	for told := make(map[string]bool); address != "" && len(told) < maxAnnounced && !told[address]; {
		told[address] = true
		address = n.announceTo(ctx, address)
	}
}

// maxAnnounced bounds how many servers are told one after the other: servers may name each other as the leader.
const maxAnnounced = 3

// announceTo returns the address of the leader if the server does not lead.
func (n *Node) announceTo(ctx context.Context, address string) (leader string) {
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
