package cluster

import (
	"context"
	"fmt"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

var _ rpc.LeaseKeeper = (*Node)(nil)

// KeepAlive is part of rpc.Node.
func (n *Node) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	if outcome := n.acceptsClusterID(req.GetCluster()); outcome != clusterpb.Outcome_DONE {
		return &clusterpb.KeepAliveReply{Outcome: outcome, Cluster: n.clusterIDFor(outcome)}, nil
	}
	reply, err := n.sessions.keepAlive(ctx, req)
	if err == nil {
		reply.Cluster = n.dir.ClusterID()
	}
	return reply, err
}

// Lease is part of rpc.Node.
func (n *Node) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	type answer struct {
		reply *clusterpb.LeaseReply
		err   error
	}
	answered := make(chan answer, 1)
	n.KeepLease(ctx, req, func(reply *clusterpb.LeaseReply, err error) { answered <- answer{reply, err} })
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// KeepLease is part of rpc.LeaseKeeper.
func (n *Node) KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error)) {
	if outcome := n.acceptsClusterID(req.GetCluster()); outcome != clusterpb.Outcome_DONE {
		answer(&clusterpb.LeaseReply{Outcome: outcome}, nil)
		return
	}
	n.leaseRenewals.request(ctx, req, answer)
}

// Sessions is part of rpc.Node.
func (n *Node) Sessions(ctx context.Context, _ *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return n.sessions.list(ctx), nil
}

// Probe is part of rpc.Node.
func (n *Node) Probe(_ context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	free, minFree := n.raft.FreeSpace()
	term, silent := n.termReports.report()
	reply := &clusterpb.ProbeReply{
		FreeSpace: free, MinSpace: minFree, Full: n.raft.IsFull(),
		Term: uint64(term), Silent: int64(silent), WallClock: n.clock.now().wall, Id: n.dir.ID, Leads: n.leadership.term() != 0,
		Cluster: n.dir.ClusterID(), Instance: uint64(n.dir.Instance()),
	}
	if req.GetProcess() {
		reply.Process = n.instances.own()
	}
	if req.GetAddresses() {
		reply.Addresses = n.members.whereabouts()
	}
	if elected := req.GetElected(); elected != 0 && req.GetCluster() == n.dir.ClusterID() {
		lasts, resigned := n.leaseGate.stop(ids.Term(elected) - 1)
		reply.Resigned, reply.LeasesLast = resigned, int64(lasts)
	}
	return reply, nil
}

// Join is part of rpc.Node.
func (n *Node) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	caller := rpc.CallerOf(ctx)
	if name := req.GetMember().GetName(); hasCertificate(caller) && name != caller.Host {
		return nil, otherHost(caller, name)
	}
	if theirs, ours := req.GetCluster(), n.dir.ClusterID(); theirs != ours {
		return rejectJoin(storepb.Code_NOT_PERMITTED, fmt.Sprintf(
			"it belongs to the cluster %q, and this one is %q: it can join with an empty data directory", theirs, ours)), nil
	}
	n.instances.describe(req.GetProcess())
	return n.joiner.join(ctx, req.GetMember(), req.GetAgain()), nil
}

// Enroll is part of rpc.Node.
func (n *Node) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	if n.certIssuer != nil {
		return n.certIssuer.enroll(ctx, req)
	}
	return &clusterpb.EnrollReply{Result: &storepb.Result{
		Code: storepb.Code_NOT_PERMITTED, Message: "this cluster gives no certificates: it runs with --insecure, or on this host only",
	}}, nil
}

// Remove is part of rpc.Node.
func (n *Node) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return n.remover.removeByName(ctx, &clusterpb.RemoveRequest{
		Name: req.GetName(), Caller: callerFor(ctx, req.GetCaller()), Force: req.GetForce(), Replacement: req.GetReplacement(),
	}), nil
}

// SetVote is part of rpc.Node.
func (n *Node) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	return n.promoter.setVote(ctx, &clusterpb.SetVoteRequest{
		Name: req.GetName(), Vote: req.GetVote(), Force: req.GetForce(), Caller: callerFor(ctx, req.GetCaller()),
	}), nil
}

// Backup is part of rpc.Node.
func (n *Node) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	return n.backups.piece(ctx, req), nil
}

// Removals returns the removals applied by this node.
func (n *Node) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, rpc.RemovalsWait)
	defer cancel()
	found, epoch, last := n.fsm.Removals(ctx, req.GetEpoch(), req.GetAfter())
	reply := &clusterpb.RemovalsReply{Epoch: epoch, Last: last}
	for _, r := range found {
		reply.Removals = append(reply.Removals, &clusterpb.Removal{
			Session: uint64(r.Session), Parent: uint64(r.Parent), Name: []byte(r.Name), Ino: uint64(r.Ino),
		})
	}
	return reply, nil
}
