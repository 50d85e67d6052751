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
	discoveryInterval   = 500 * time.Millisecond // between searches of a starting server
	rediscoveryInterval = 5 * time.Second        // between checks of a running one
)

// hasMoved reports whether the cluster has another address of this node, as far as this node knows.
func (n *Node) hasMoved() bool {
	known := n.raft.Server(n.dir.ID)
	return n.dir.HasJoined() && n.cfg.Address != "" && known != nil &&
		(string(known.Address) != n.dir.Address || n.members.get(n.dir.ID).GetAddress() != n.dir.Address)
}

// discoverPeers announces this node's address to the others and looks for theirs until ctx ends. The
// leader commits addresses. Without a leader each server remembers the addresses that it has learned.
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

// hasNoLeader reports whether this server knows no leader, is recorded at another address, or leads while
// a member does not answer: that member may have a new address, known to another server.
func (n *Node) hasNoLeader() bool {
	leader, _ := n.members.leader()
	return leader == "" || n.hasMoved() || len(n.failureDetector.unreachable()) > 0
}

// rediscover searches for the others whenever hasNoLeader reports true, until ctx ends: a leader may have
// taken this server's address away and failed before it committed the new one (addressBook.commit).
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

// maxProbedPerServer limits the addresses of one search, for each server of the cluster.
const maxProbedPerServer = 8

// search asks servers for the addresses of the others, and then asks there. A stale address does no harm:
// only a server that answers counts.
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

// probeAddresses returns the id of the server at each address that answers.
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
				err = fmt.Errorf("at %s answers %q, which is no other server of this cluster", address, reply.GetId()) // or it has joined since
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

// learnAddresses records servers found only elsewhere than raft's configuration has them: a server may
// have several addresses.
func (n *Node) learnAddresses(there map[string]raft.ServerID) {
	for address, id := range there {
		if known := n.raft.Server(string(id)); known != nil && there[string(known.Address)] != id {
			n.members.learnedAddresses.Learn(*known, raft.ServerAddress(address))
		}
	}
}

// announceAddress announces this node's address to a server, and then to the leader named by it.
func (n *Node) announceAddress(ctx context.Context, address string) {
	for told := make(map[string]bool); address != "" && len(told) < maxAnnounced && !told[address]; {
		told[address] = true
		address = n.announceTo(ctx, address)
	}
}

// maxAnnounced limits a chain of servers that name each other as the leader.
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
