package rpc

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
)

// Node is what can be asked of a node, in its process or by a call (clusterpb/cluster.proto says what each is). The error is
// that there is no answer; a node that answers itself has none.
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

// Answer is what says whether the asked node did what it was asked.
type Answer interface {
	GetOutcome() clusterpb.Outcome
	GetLeaderAddress() string
}

// LeaseKeeper is a node that keeps what many mounts ask of it for a while.
type LeaseKeeper interface {
	Node
	// KeepLease is Lease for a server. It does not wait, and the answer is told once, at once or later, which does not wait either.
	// That nobody is there any more to be answered, ctx tells.
	KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error))
}

// Enroller is what a join server asks.
type Enroller interface {
	Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error)
	ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error)
}

// RemovalsWait is how long a node keeps a question for removals.
const RemovalsWait = 30 * time.Second

// ReleaseWait is how long a request that must not wait is kept, in all, if the mount of a holder is asked whether a release is in progress.
const ReleaseWait = 50 * time.Millisecond

// How long a voter is waited for that is asked for its word.
const (
	ProbeTimeout     = time.Second
	FastProbeTimeout = 5 * time.Millisecond // while there are others to ask
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
