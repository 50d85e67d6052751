package rpc

import (
	"context"

	"lockfs/cluster/clusterpb"
)

var _ Node = (*Remote)(nil)

// Remote is a node that is called.
type Remote struct {
	client *Client
	alive  *Client // for keepalives and leases: they must not wait behind calls that wait for room, or the session is lost with its locks, and others wait for a lease
}

// NewRemote takes HOST:PORT, or unix:PATH. It does not connect yet. security may be nil.
func NewRemote(address string, security *Security) *Remote {
	return newRemote(address, security, ProtocolRPC)
}

func newRemote(address string, security *Security, protocol string) *Remote {
	return &Remote{newClient(address, security, protocol), newClient(address, security, protocol)}
}

// Close ends the connections.
func (r *Remote) Close() {
	r.client.Close()
	r.alive.Close()
}

// Execute is part of Node.
func (r *Remote) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply := new(clusterpb.ExecuteReply)
	return reply, r.client.Call(ctx, executeMethod, req, reply)
}

// KeepAlive is part of Node.
func (r *Remote) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	reply := new(clusterpb.KeepAliveReply)
	return reply, r.alive.Call(ctx, keepAliveMethod, req, reply)
}

// Lease is part of Node.
func (r *Remote) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	reply := new(clusterpb.LeaseReply)
	return reply, r.alive.Call(ctx, leaseMethod, req, reply)
}

// Sessions is part of Node.
func (r *Remote) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	reply := new(clusterpb.SessionsReply)
	return reply, r.client.Call(ctx, sessionsMethod, req, reply)
}

// Removals is part of Node.
func (r *Remote) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	reply := new(clusterpb.RemovalsReply)
	return reply, r.client.Call(ctx, removalsMethod, req, reply)
}

// AwaitRelease is part of Node.
func (r *Remote) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	reply := new(clusterpb.AwaitReleaseReply)
	return reply, r.client.Call(ctx, awaitReleaseMethod, req, reply)
}

// ReleaseQuestions is part of Node.
func (r *Remote) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	reply := new(clusterpb.ReleaseQuestionsReply)
	return reply, r.client.Call(ctx, releaseQuestionsMethod, req, reply)
}

// EndedWaits is part of Node.
func (r *Remote) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	reply := new(clusterpb.EndedWaitsReply)
	return reply, r.client.Call(ctx, endedWaitsMethod, req, reply)
}

// Probe is part of Node.
func (r *Remote) Probe(ctx context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	reply := new(clusterpb.ProbeReply)
	return reply, r.client.Call(ctx, probeMethod, req, reply)
}

// Status is part of Node.
func (r *Remote) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	reply := new(clusterpb.StatusReply)
	return reply, r.client.Call(ctx, statusMethod, req, reply)
}

// Join is part of Node.
func (r *Remote) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, r.client.Call(ctx, joinMethod, req, reply)
}

// Remove is part of Node.
func (r *Remote) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, r.client.Call(ctx, removeMethod, req, reply)
}

// SetVote is part of Node.
func (r *Remote) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, r.client.Call(ctx, setVoteMethod, req, reply)
}

// Change is part of Node.
func (r *Remote) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	reply := new(clusterpb.AdminReply)
	return reply, r.client.Call(ctx, changeMethod, req, reply)
}

// Enroll is part of Node.
func (r *Remote) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	reply := new(clusterpb.EnrollReply)
	return reply, r.client.Call(ctx, enrollMethod, req, reply)
}

// ProveServer is part of Node.
func (r *Remote) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	reply := new(clusterpb.ProveServerReply)
	return reply, r.client.Call(ctx, proveServerMethod, req, reply)
}

// Backup is part of Node.
func (r *Remote) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	reply := new(clusterpb.BackupReply)
	return reply, r.client.Call(ctx, backupMethod, req, reply)
}
