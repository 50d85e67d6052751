package cluster

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

var _ rpc.Node = (*Node)(nil)

// KeepAlive is part of rpc.Node.
func (n *Node) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return n.sessions.keepAlive(ctx, req), nil
}

// Sessions is part of rpc.Node.
func (n *Node) Sessions(ctx context.Context, _ *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return n.sessions.list(ctx), nil
}

// Probe is part of rpc.Node.
func (n *Node) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return &clusterpb.ProbeReply{
		Term: n.raft.CurrentTerm(), WallClock: readClocks().wall, Id: n.dir.ID, Leads: n.leadership.term() != 0,
	}, nil
}

// Join is part of rpc.Node.
func (n *Node) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return n.admission.join(ctx, req.GetMember()), nil
}

// Remove is part of rpc.Node.
func (n *Node) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return n.expulsion.remove(ctx, req.GetName()), nil
}

// Backup is part of rpc.Node.
func (n *Node) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	return n.backups.piece(ctx, req), nil
}
