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

var _ rpc.LeaseKeeper = (*guard)(nil)

// guard stands in front of a node and lets through what its callers have the right to. All that comes from outside of the process
// comes through one.
type guard struct {
	node    rpc.Node
	rightOf func(rpc.Caller) right
	refused func(caller rpc.Caller, what string)
}

// pass does what a caller asks for, if he may.
func pass[Request proto.Message, Reply any](
	ctx context.Context, g *guard, request Request, do func(rpc.Node, context.Context, Request) (Reply, error),
) (reply Reply, err error) {
	if err := g.check(ctx, request); err != nil {
		return reply, err
	}
	return do(g.node, ctx, request)
}

// check is an error, a *rpc.RefusedError, if a caller may not ask for something.
func (g *guard) check(ctx context.Context, request proto.Message) error {
	what, least := rightFor(request)
	caller := rpc.CallerOf(ctx)
	if g.rightOf(caller) >= least {
		return nil
	}
	g.refused(caller, string(what))
	return refuse(storepb.Code_NOT_PERMITTED,
		fmt.Sprintf("%s may not ask for %s: that takes %s; see `lockfs help security`", caller, what, least))
}

// refuse is the answer to a call that is not done.
func refuse(code storepb.Code, message string) error {
	return &rpc.RefusedError{Result: &storepb.Result{Code: code, Message: message}}
}

func notRelayed() error {
	return refuse(storepb.Code_NOT_PERMITTED, "that cannot be asked on a socket")
}

// Execute is part of rpc.Node.
func (g *guard) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return pass(ctx, g, req, rpc.Node.Execute)
}

// KeepAlive is part of rpc.Node.
func (g *guard) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return pass(ctx, g, req, rpc.Node.KeepAlive)
}

// Sessions is part of rpc.Node.
func (g *guard) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return pass(ctx, g, req, rpc.Node.Sessions)
}

// Lease is part of rpc.Node.
func (g *guard) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	return pass(ctx, g, req, rpc.Node.Lease)
}

// KeepLease is part of rpc.LeaseKeeper.
func (g *guard) KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error)) {
	keeper, keeps := g.node.(rpc.LeaseKeeper)
	if err := g.check(ctx, req); err != nil || !keeps {
		answer(nil, cmp.Or(err, notRelayed()))
		return
	}
	keeper.KeepLease(ctx, req, answer)
}

// Removals is part of rpc.Node.
func (g *guard) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	return pass(ctx, g, req, rpc.Node.Removals)
}

// AwaitRelease is part of rpc.Node.
func (g *guard) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	return pass(ctx, g, req, rpc.Node.AwaitRelease)
}

// ReleaseQuestions is part of rpc.Node.
func (g *guard) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	return pass(ctx, g, req, rpc.Node.ReleaseQuestions)
}

// EndedWaits is part of rpc.Node.
func (g *guard) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	return pass(ctx, g, req, rpc.Node.EndedWaits)
}

// Probe is part of rpc.Node.
func (g *guard) Probe(ctx context.Context, req *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return pass(ctx, g, req, rpc.Node.Probe)
}

// Status is part of rpc.Node.
func (g *guard) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return pass(ctx, g, req, rpc.Node.Status)
}

// Join is part of rpc.Node.
func (g *guard) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return pass(ctx, g, req, rpc.Node.Join)
}

// Remove is part of rpc.Node.
func (g *guard) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return pass(ctx, g, req, rpc.Node.Remove)
}

// SetVote is part of rpc.Node.
func (g *guard) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	return pass(ctx, g, req, rpc.Node.SetVote)
}

// Change is part of rpc.Node.
func (g *guard) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	return pass(ctx, g, req, rpc.Node.Change)
}

// Enroll is part of rpc.Node.
func (g *guard) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return pass(ctx, g, req, rpc.Node.Enroll)
}

// ProveServer is part of rpc.Node.
func (g *guard) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return pass(ctx, g, req, rpc.Node.ProveServer)
}

// Backup is part of rpc.Node.
func (g *guard) Backup(ctx context.Context, req *clusterpb.BackupRequest) (*clusterpb.BackupReply, error) {
	return pass(ctx, g, req, rpc.Node.Backup)
}

// mostRefusals bounds what is remembered of refusals so as not to log them again.
const mostRefusals = 10_000

// refusals logs each kind of refused call once for each host.
type refusals struct {
	logger *slog.Logger
	count  func(role, what string) // may be nil

	mu   sync.Mutex
	seen map[string]bool
}

func newRefusals(logger *slog.Logger, count func(role, what string)) *refusals {
	return &refusals{logger: logger, count: count, seen: make(map[string]bool)}
}

// note takes what was refused by its name in the table of rights, so that nobody can fill figures with names.
func (r *refusals) note(caller rpc.Caller, what string) {
	if r.count != nil {
		r.count(caller.Role.String(), what)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := caller.String() + " " + what
	if r.seen[key] || len(r.seen) >= mostRefusals {
		return
	}
	r.seen[key] = true
	r.logger.Warn("a call was refused", "caller", caller.String(), "call", what)
}
