package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

var _ rpc.LeaseKeeper = (*authorizer)(nil)

// authorizer checks the permissions of callers in front of a node. All calls from outside the process
// pass one.
type authorizer struct {
	node      rpc.Node
	grant     func(rpc.Caller) permission
	onRefusal func(caller rpc.Caller, what string)
}

// authorize does a call if its caller may.
func authorize[Request proto.Message, Reply any](
	ctx context.Context, g *authorizer, request Request, do func(rpc.Node, context.Context, Request) (Reply, error),
) (reply Reply, err error) {
	if err := g.check(ctx, request); err != nil {
		return reply, err
	}
	return do(g.node, ctx, request)
}

// check returns a *rpc.RefusedError if the caller may not send a request.
func (a *authorizer) check(ctx context.Context, request proto.Message) error {
	what, least := requiredPermission(request)
	caller := rpc.CallerOf(ctx)
	if a.grant(caller) >= least {
		return nil
	}
	a.onRefusal(caller, string(what))
	return refuse(storepb.Code_NOT_PERMITTED,
		fmt.Sprintf("%s may not ask for %s: that takes %s; see `lockfs help security`", caller, what, least))
}

// refuse returns the error of a refused call.
func refuse(code storepb.Code, message string) error {
	return &rpc.RefusedError{Result: &storepb.Result{Code: code, Message: message}}
}

func errNotProxied() error {
	return refuse(storepb.Code_NOT_PERMITTED, "that cannot be asked on a socket")
}

// Execute is part of rpc.Node.
func (a *authorizer) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return authorize(ctx, a, req, rpc.Node.Execute)
}

// KeepAlive is part of rpc.Node.
func (a *authorizer) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return authorize(ctx, a, req, rpc.Node.KeepAlive)
}

// Sessions is part of rpc.Node.
func (a *authorizer) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return authorize(ctx, a, req, rpc.Node.Sessions)
}

// Lease is part of rpc.Node.
func (a *authorizer) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	return authorize(ctx, a, req, rpc.Node.Lease)
}

// KeepLease is part of rpc.LeaseKeeper.
func (a *authorizer) KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error)) {
	keeper, keeps := a.node.(rpc.LeaseKeeper)
	if err := a.check(ctx, req); err != nil || !keeps {
		answer(nil, cmp.Or(err, errNotProxied()))
		return
	}
	keeper.KeepLease(ctx, req, answer)
}

// Removals is part of rpc.Node.
func (a *authorizer) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return authorize(ctx, a, req, rpc.Node.Removals)
}

// AwaitRelease is part of rpc.Node.
func (a *authorizer) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	return authorize(ctx, a, req, rpc.Node.AwaitRelease)
}

// ReleaseQuestions is part of rpc.Node.
func (a *authorizer) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	return authorize(ctx, a, req, rpc.Node.ReleaseQuestions)
}

// EndedWaits is part of rpc.Node.
func (a *authorizer) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	return authorize(ctx, a, req, rpc.Node.EndedWaits)
}

// Probe is part of rpc.Node.
func (a *authorizer) Probe(ctx context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return authorize(ctx, a, req, rpc.Node.Probe)
}

// Status is part of rpc.Node.
func (a *authorizer) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return authorize(ctx, a, req, rpc.Node.Status)
}

// Join is part of rpc.Node.
func (a *authorizer) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return authorize(ctx, a, req, rpc.Node.Join)
}

// Remove is part of rpc.Node.
func (a *authorizer) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return authorize(ctx, a, req, rpc.Node.Remove)
}

// SetVote is part of rpc.Node.
func (a *authorizer) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	return authorize(ctx, a, req, rpc.Node.SetVote)
}

// Change is part of rpc.Node.
func (a *authorizer) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	return authorize(ctx, a, req, rpc.Node.Change)
}

// Enroll is part of rpc.Node.
func (a *authorizer) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return authorize(ctx, a, req, rpc.Node.Enroll)
}

// ProveServer is part of rpc.Node.
func (a *authorizer) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return authorize(ctx, a, req, rpc.Node.ProveServer)
}

// Backup is part of rpc.Node.
func (a *authorizer) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	return authorize(ctx, a, req, rpc.Node.Backup)
}

// maxRefusalsLogged limits the memory of logged refusals.
const maxRefusalsLogged = 10_000

// refusalLog logs each kind of refused call once for each host.
type refusalLog struct {
	logger *slog.Logger
	count  func(role, what string) // may be nil

	mu   sync.Mutex
	seen map[string]bool
}

func newRefusalLog(logger *slog.Logger, count func(role, what string)) *refusalLog {
	return &refusalLog{logger: logger, count: count, seen: make(map[string]bool)}
}

// note takes the call's name in the table of permissions, so that callers cannot fill metrics with names.
func (l *refusalLog) note(caller rpc.Caller, what string) {
	if l.count != nil {
		l.count(caller.Role.String(), what)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := caller.String() + " " + what
	if l.seen[key] || len(l.seen) >= maxRefusalsLogged {
		return
	}
	l.seen[key] = true
	l.logger.Warn("a call was refused", "caller", caller.String(), "call", what)
}
