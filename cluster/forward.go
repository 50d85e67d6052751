package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

var _ rpc.LeaseKeeper = (*forwarding)(nil)

// forwarding forwards requests to the leader for callers that cannot reach it. A request is forwarded
// once: only the leader does a forwarded one, and other nodes name the leader.
type forwarding struct {
	rpc.LeaseKeeper // this node
	to              *rpc.Forwarder
	peers           *rpc.Peers
	members         *members
	leadership      *leadership
	forwarded       func()
}

// forwardable does a request here, or forwards it.
func forwardable[Request proto.Message, Reply rpc.Answer](
	ctx context.Context, f *forwarding, request Request, do func(rpc.Node, context.Context, Request) (Reply, error),
) (Reply, error) {
	if f.isOfAnother(ctx) {
		return *new(Reply), rpc.NotForwarded
	}
	reply, err := do(f.LeaseKeeper, ctx, request)
	if err != nil || !f.isDue(ctx, reply) {
		return reply, err
	}
	return forwardToLeader(ctx, f, request, do)
}

// isOfAnother reports whether a request was forwarded by a server of another cluster.
func (f *forwarding) isOfAnother(ctx context.Context) bool {
	cluster := rpc.ClusterOf(ctx)
	return cluster != "" && cluster != f.members.dir.ClusterID()
}

// isDue reports whether the caller cannot reach the leader, and the request was not done here.
func (f *forwarding) isDue(ctx context.Context, reply rpc.Answer) bool {
	leader := rpc.Unreachable(ctx)
	return leader != "" && reply.GetOutcome() == clusterpb.Outcome_NOT_LEADER && reply.GetLeaderAddress() == leader
}

// answerTime is the share of the caller's time, in tenths, left for this node's own reply.
const answerTime = 1

func forwardToLeader[Request proto.Message, Reply rpc.Answer](
	ctx context.Context, f *forwarding, request Request, do func(rpc.Node, context.Context, Request) (Reply, error),
) (reply Reply, err error) {
	if !slices.Contains(f.members.raft.VoterIDs(), f.members.dir.ID) {
		return reply, rpc.NotForwarded
	}
	f.forwarded()
	leader := rpc.Unreachable(ctx)
	ctx, cancel := f.whileLeading(ctx, leader)
	defer cancel()
	return rpc.Forward(ctx, f.to, leader, do, request)
}

// whileLeading returns a context that ends when the leader's address changes, or shortly before ctx.
func (f *forwarding) whileLeading(ctx context.Context, address string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeLeft(ctx)*(10-answerTime)/10)
	go func() {
		defer cancel()
		for {
			changed := f.leadership.change()
			if _, now := f.members.leader(); now != address {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

func timeLeft(ctx context.Context) time.Duration {
	if deadline, limited := ctx.Deadline(); limited {
		return time.Until(deadline)
	}
	return rpc.AttemptTimeout
}

// Execute is part of rpc.Node.
func (f *forwarding) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Execute)
}

// KeepAlive is part of rpc.Node.
func (f *forwarding) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return forwardable(ctx, f, req, rpc.Node.KeepAlive)
}

// Lease is part of rpc.Node.
func (f *forwarding) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Lease)
}

// KeepLease is part of rpc.LeaseKeeper. A goroutine waits with each forwarded request; only on the leader
// there are very many.
func (f *forwarding) KeepLease(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error)) {
	if f.isOfAnother(ctx) {
		answer(nil, rpc.NotForwarded)
		return
	}
	f.LeaseKeeper.KeepLease(ctx, req, func(reply *clusterpb.LeaseReply, err error) {
		if err != nil || !f.isDue(ctx, reply) {
			answer(reply, err)
			return
		}
		go func() { answer(forwardToLeader(ctx, f, req, rpc.Node.Lease)) }()
	})
}

// Sessions is part of rpc.Node.
func (f *forwarding) Sessions(ctx context.Context, req *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Sessions)
}

// AwaitRelease is part of rpc.Node.
func (f *forwarding) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	return forwardable(ctx, f, req, rpc.Node.AwaitRelease)
}

// ReleaseQuestions is part of rpc.Node.
func (f *forwarding) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	return forwardable(ctx, f, req, rpc.Node.ReleaseQuestions)
}

// EndedWaits is part of rpc.Node.
func (f *forwarding) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	return forwardable(ctx, f, req, rpc.Node.EndedWaits)
}

// Join is part of rpc.Node.
func (f *forwarding) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Join)
}

// Remove is part of rpc.Node.
func (f *forwarding) Remove(ctx context.Context, req *clusterpb.RemoveRequest) (*clusterpb.AdminReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Remove)
}

// SetVote is part of rpc.Node.
func (f *forwarding) SetVote(ctx context.Context, req *clusterpb.SetVoteRequest) (*clusterpb.AdminReply, error) {
	return forwardable(ctx, f, req, rpc.Node.SetVote)
}

// Change is part of rpc.Node.
func (f *forwarding) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Change)
}

// ProveServer is part of rpc.Node.
func (f *forwarding) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return forwardable(ctx, f, req, rpc.Node.ProveServer)
}

// Enroll is part of rpc.Node.
func (f *forwarding) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return forwardable(ctx, f, req, rpc.Node.Enroll)
}

// authorizeForwarded checks a forwarded request: the forwarding server has to be a voter, and the caller
// one that could call this node itself. Authorizer and identityCheck then treat the caller as usual. A
// follower may not know yet that a host was admitted, and only refuses to take the request.
func (n *Node) authorizeForwarded(by, caller rpc.Caller) error {
	if n.cfg.insecure() {
		if by.Role != rpc.RoleInsecure || caller.Role != rpc.RoleInsecure {
			return rpc.MayNotForward
		}
		return nil
	}
	term := n.leadership.term()
	if by.Role != rpc.RoleServer || !n.members.isVoter(by.Host) || n.admits(by) != nil {
		return rpc.MayNotForward
	}
	switch caller.Role {
	case rpc.RoleClient, rpc.RoleServer:
	case rpc.RoleJoiner:
		return nil
	default:
		return rpc.MayNotForward
	}
	if err := n.admits(caller); err != nil {
		if term == 0 {
			return rpc.MayNotForward
		}
		return refuse(storepb.Code_NOT_PERMITTED, fmt.Sprintf("%s: %v", caller, err))
	}
	if caller.Role == rpc.RoleServer {
		n.failureDetector.noteForwardedCall(caller.Host)
	}
	return nil
}

// admits returns why a host with a certificate is not admitted, as far as this node knows.
func (n *Node) admits(caller rpc.Caller) (err error) {
	role := storepb.Role_CLIENT
	if caller.Role == rpc.RoleServer {
		role = storepb.Role_SERVER
	}
	n.fsm.View(func(ns *namespace.Namespace) { err = ns.Admitted(caller.Host, role, caller.Key[:]) })
	return err
}
