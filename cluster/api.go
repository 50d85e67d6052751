package cluster

import (
	"context"

	"lockfs/cluster/clusterpb"
)

var _ clusterpb.NodeServer = (*api)(nil)

// api is what a node answers on the network.
type api struct {
	clusterpb.UnimplementedNodeServer
	node *Node
}

func (a *api) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return a.node.Execute(ctx, req), nil
}

func (a *api) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return a.node.KeepAlive(ctx, req), nil
}

func (a *api) Sessions(ctx context.Context, _ *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return a.node.Sessions(ctx), nil
}

func (a *api) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return a.node.Removals(ctx, req), nil
}

func (a *api) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return &clusterpb.ProbeReply{Term: a.node.raft.CurrentTerm(), WallClock: readClocks().wall}, nil
}

func (a *api) Status(_ context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return a.node.Status(req.GetHash()), nil
}

func (a *api) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return a.node.Join(ctx, req.GetMember()), nil
}

func (a *api) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	return a.node.Change(ctx, req), nil
}

func (a *api) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return a.node.Remove(ctx, req.GetName()), nil
}
