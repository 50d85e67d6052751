package rpc

import (
	"context"

	"lockfs/cluster/clusterpb"
)

var _ Node = (*Client)(nil)

// Client is a remote node.
type Client struct {
	calls  *Channel
	urgent *Channel // for keepalives and leases, which must not wait behind calls without quota: a lost session costs its locks
}

// NewClient takes HOST:PORT, or unix:PATH. It does not connect yet. security may be nil.
func NewClient(address string, security *Security) *Client {
	return newClient(address, security, ProtocolRPC)
}

func newClient(address string, security *Security, protocol string) *Client {
	return &Client{newChannel(address, security, protocol), newChannel(address, security, protocol)}
}

// Close closes the connections.
func (c *Client) Close() {
	c.calls.Close()
	c.urgent.Close()
}

// Execute is part of Node.
func (c *Client) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply := new(clusterpb.ExecuteReply)
	return reply, c.calls.Call(ctx, executeMethod, req, reply)
}

// KeepAlive is part of Node.
func (c *Client) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	reply := new(clusterpb.KeepAliveReply)
	return reply, c.urgent.Call(ctx, keepAliveMethod, req, reply)
}

// Lease is part of Node.
func (c *Client) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	reply := new(clusterpb.LeaseReply)
	return reply, c.urgent.Call(ctx, leaseMethod, req, reply)
}

// Sessions is part of Node.
func (c *Client) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	reply := new(clusterpb.SessionsReply)
	return reply, c.calls.Call(ctx, sessionsMethod, req, reply)
}

// Removals is part of Node.
func (c *Client) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	reply := new(clusterpb.RemovalsReply)
	return reply, c.calls.Call(ctx, removalsMethod, req, reply)
}

// AwaitRelease is part of Node.
func (c *Client) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	reply := new(clusterpb.AwaitReleaseReply)
	return reply, c.calls.Call(ctx, awaitReleaseMethod, req, reply)
}

// ReleaseQuestions is part of Node.
func (c *Client) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	reply := new(clusterpb.ReleaseQuestionsReply)
	return reply, c.calls.Call(ctx, releaseQuestionsMethod, req, reply)
}

// EndedWaits is part of Node.
func (c *Client) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	reply := new(clusterpb.EndedWaitsReply)
	return reply, c.calls.Call(ctx, endedWaitsMethod, req, reply)
}

// Probe is part of Node.
func (c *Client) Probe(ctx context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	reply := new(clusterpb.ProbeReply)
	return reply, c.calls.Call(ctx, probeMethod, req, reply)
}

// Status is part of Node.
func (c *Client) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	reply := new(clusterpb.StatusReply)
	return reply, c.calls.Call(ctx, statusMethod, req, reply)
}

// Join is part of Node.
func (c *Client) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, c.calls.Call(ctx, joinMethod, req, reply)
}

// Remove is part of Node.
func (c *Client) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, c.calls.Call(ctx, removeMethod, req, reply)
}

// SetVote is part of Node.
func (c *Client) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, c.calls.Call(ctx, setVoteMethod, req, reply)
}

// Change is part of Node.
func (c *Client) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, c.calls.Call(ctx, changeMethod, req, reply)
}

// Enroll is part of Node.
func (c *Client) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	reply := new(clusterpb.EnrollReply)
	return reply, c.calls.Call(ctx, enrollMethod, req, reply)
}

// ProveServer is part of Node.
func (c *Client) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	reply := new(clusterpb.ProveServerReply)
	return reply, c.calls.Call(ctx, proveServerMethod, req, reply)
}

// Backup is part of Node.
func (c *Client) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	reply := new(clusterpb.BackupReply)
	return reply, c.calls.Call(ctx, backupMethod, req, reply)
}
