package cluster

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
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

// Enroll is part of rpc.Node.
func (n *Node) Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return &clusterpb.EnrollReply{Result: &storepb.Result{
		Code: storepb.Code_NOT_PERMITTED, Message: "this cluster is insecure: it admits no hosts",
	}}, nil
}

// Remove is part of rpc.Node.
func (n *Node) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return n.expulsion.remove(ctx, req.GetName()), nil
}

// Backup is part of rpc.Node.
func (n *Node) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	if !mayBackUp(rpc.CallerOf(ctx)) {
		return &clusterpb.BackupReply{Refused: "only root of a server gets a backup, which holds what all locks contain"}, nil
	}
	return n.backups.piece(ctx, req), nil
}

// mayBackUp tells who may read everything, whatever the permissions of files are.
func mayBackUp(caller rpc.Caller) bool {
	switch caller.Role {
	case rpc.RoleLocal, rpc.RoleInsecure, rpc.RoleServer:
		return true
	case rpc.RoleUser:
		return caller.UID == 0
	}
	return false
}
