package rpc

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
)

// Node has the methods of a node, local or remote (see clusterpb/cluster.proto). An error of a remote node
// means: there is no reply.
type Node interface {
	Execute(context.Context, *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error)
	KeepAlive(context.Context, *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error)
	Lease(context.Context, *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error)
	Sessions(context.Context, *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error)
	Removals(context.Context, *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error)
	AwaitRelease(context.Context, *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error)
	ReleaseQuestions(context.Context, *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error)
	EndedWaits(context.Context, *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error)
	Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error)
	Status(context.Context, *clusterpb.StatusRequest) (*clusterpb.StatusReply, error)
	Join(context.Context, *clusterpb.JoinRequest) (*clusterpb.AdminReply, error)
	Remove(context.Context, *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error)
	SetVote(context.Context, *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error)
	Change(context.Context, *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error)
	Backup(context.Context, *clusterpb.BackupRequest) (*clusterpb.BackupReply, error)
	Enroller
}

// Answer is a reply with the outcome of a request.
type Answer interface {
	GetOutcome() clusterpb.Outcome
	GetLeaderAddress() string
}

// LeaseKeeper is a node which keeps lease requests of many mounts.
type LeaseKeeper interface {
	Node
	// KeepLease is Lease for a server. It calls answer once, now or later. Neither waits. ctx ends when
	// the caller has gone.
	KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error))
}

// Enroller is called by a join server.
type Enroller interface {
	Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error)
	ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error)
}

// RemovalsWait is how long a node keeps a request for removals.
const RemovalsWait = 30 * time.Second

// ReleaseWait is the longest wait of a non-blocking request for a release in progress on the holder's mount.
const ReleaseWait = 50 * time.Millisecond

// Timeouts of probes.
const (
	ProbeTimeout     = time.Second
	FastProbeTimeout = 5 * time.Millisecond // while there are other voters to ask
)

// Methods by their numbers on the wire.
const (
	executeMethod byte = iota
	probeMethod
	keepAliveMethod
	sessionsMethod
	removalsMethod
	statusMethod
	joinMethod
	removeMethod
	changeMethod
	enrollMethod
	backupMethod
	setVoteMethod
	leaseMethod
	awaitReleaseMethod
	releaseQuestionsMethod
	proveServerMethod
	endedWaitsMethod
)
