package cluster

import (
	"context"

	"google.golang.org/grpc"

	"lockfs/cluster/clusterpb"
)

var _ clusterpb.NodeClient = localClient{}

// localClient reaches the node of this process without a network.
type localClient struct{ api *api }

func (l localClient) Execute(ctx context.Context, req *clusterpb.ExecuteRequest, _ ...grpc.CallOption) (*clusterpb.ExecuteReply, error) {
	return l.api.Execute(ctx, req)
}

func (l localClient) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest, _ ...grpc.CallOption) (*clusterpb.KeepAliveReply, error) {
	return l.api.KeepAlive(ctx, req)
}

func (l localClient) Sessions(ctx context.Context, req *clusterpb.SessionsRequest, _ ...grpc.CallOption) (*clusterpb.SessionsReply, error) {
	return l.api.Sessions(ctx, req)
}

func (l localClient) Removals(ctx context.Context, req *clusterpb.RemovalsRequest, _ ...grpc.CallOption) (*clusterpb.RemovalsReply, error) {
	return l.api.Removals(ctx, req)
}

func (l localClient) Probe(ctx context.Context, req *clusterpb.ProbeRequest, _ ...grpc.CallOption) (*clusterpb.ProbeReply, error) {
	return l.api.Probe(ctx, req)
}

func (l localClient) Status(ctx context.Context, req *clusterpb.StatusRequest, _ ...grpc.CallOption) (*clusterpb.StatusReply, error) {
	return l.api.Status(ctx, req)
}

func (l localClient) Join(ctx context.Context, req *clusterpb.JoinRequest, _ ...grpc.CallOption) (*clusterpb.AdminReply, error) {
	return l.api.Join(ctx, req)
}

func (l localClient) Change(ctx context.Context, req *clusterpb.ChangeRequest, _ ...grpc.CallOption) (*clusterpb.AdminReply, error) {
	return l.api.Change(ctx, req)
}

func (l localClient) Remove(ctx context.Context, req *clusterpb.RemoveRequest, _ ...grpc.CallOption) (*clusterpb.AdminReply, error) {
	return l.api.Remove(ctx, req)
}
