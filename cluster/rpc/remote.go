package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
)

var _ Node = (*Remote)(nil)

// Remote is a node that is called.
type Remote struct{ client *Client }

// NewRemote takes the node's API address. It does not connect yet.
func NewRemote(address string) *Remote { return &Remote{NewClient(address)} }

// Close ends the connection.
func (r *Remote) Close() { r.client.Close() }

func ask[Reply any, P message[Reply]](ctx context.Context, r *Remote, method byte, request proto.Message) (P, error) {
	reply := P(new(Reply))
	return reply, r.client.Call(ctx, method, request, reply)
}

// Execute is part of Node.
func (r *Remote) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return ask[clusterpb.ExecuteReply](ctx, r, executeMethod, req)
}

// KeepAlive is part of Node.
func (r *Remote) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return ask[clusterpb.KeepAliveReply](ctx, r, keepAliveMethod, req)
}

// Sessions is part of Node.
func (r *Remote) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return ask[clusterpb.SessionsReply](ctx, r, sessionsMethod, req)
}

// Removals is part of Node.
func (r *Remote) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return ask[clusterpb.RemovalsReply](ctx, r, removalsMethod, req)
}

// Probe is part of Node.
func (r *Remote) Probe(ctx context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return ask[clusterpb.ProbeReply](ctx, r, probeMethod, req)
}

// Status is part of Node.
func (r *Remote) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return ask[clusterpb.StatusReply](ctx, r, statusMethod, req)
}

// Join is part of Node.
func (r *Remote) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return ask[clusterpb.AdminReply](ctx, r, joinMethod, req)
}

// Remove is part of Node.
func (r *Remote) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return ask[clusterpb.AdminReply](ctx, r, removeMethod, req)
}

// Change is part of Node.
func (r *Remote) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	return ask[clusterpb.AdminReply](ctx, r, changeMethod, req)
}
