package cluster

import (
	"cmp"
	"context"
	"strings"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// Status describes this node.
func (n *Node) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	if id := req.GetReached(); id != "" && id != n.dir.ID {
		return n.reached(ctx, id)
	}
	leader, leaderAddress := n.members.leader()
	status := &clusterpb.StatusReply{
		Id: n.dir.ID, Name: n.dir.Name, Version: n.cfg.Version,
		State:    strings.ToLower(n.raft.State().String()),
		LeaderId: leader, LeaderAddress: leaderAddress,
		Term: n.raft.CurrentTerm(), CommitIndex: n.raft.CommitIndex(), AppliedIndex: n.raft.AppliedIndex(),
		Voters: n.raft.VoterIDs(), Nonvoters: n.raft.NonvoterIDs(), Silences: n.failureDetector.unreachable(), VotersSeen: n.votersSeen(), Mount: n.mountPoint(),
		Insecure:      n.cfg.insecure(),
		OldestVersion: n.cfg.versions.Oldest, NewestVersion: n.cfg.versions.Newest, Full: n.raft.IsFull(),
		Instance: uint64(n.dir.Instance()),
	}
	n.fsm.View(func(ns *namespace.Namespace) {
		status.Cluster, status.ClusterVersion = cmp.Or(ns.Cluster(), n.dir.ClusterID()), ns.Version()
		status.EarlierClusters = ns.EarlierClusters()
		status.StateIndex = uint64(ns.Index())
		status.Inodes, status.Usage = uint64(ns.Inodes()), ns.Usage()
		status.Members = ns.Members()
		status.Sessions = uint64(ns.Sessions())
		status.ClusterTime = ns.Time().UnixNano()
	})
	if n.leadership.term() != 0 {
		status.ClusterTime = n.clock.Now()
	}
	if req.GetHash() {
		if state := n.fsm.State(); state != nil {
			status.StateIndex, status.StateHash = uint64(state.Index()), state.Hash()
		}
	}
	if index := ids.Index(req.GetFrozen()); index != 0 {
		status.Frozen = n.stateHasher.at(index)
	}
	if req.GetRecent() {
		status.Recent = n.latency.all()
	}
	if req.GetConfirm() {
		status.Confirmed = n.proposer.confirmConfiguration(ctx) == nil
	}
	return status, nil
}

// reached returns the status of another member, fetched from here.
func (n *Node) reached(ctx context.Context, id string) (*clusterpb.StatusReply, error) {
	ctx, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	node := n.instances.dial(n.members.address(id))
	defer node.Close()
	reply, err := node.Status(ctx, new(clusterpb.StatusRequest))
	return reply, asRefusal(err)
}
