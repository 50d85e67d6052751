package cluster

import (
	"context"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
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
	return &clusterpb.ProbeReply{
		Term: a.node.raft.CurrentTerm(), WallClock: readClocks().wall, Id: a.node.id.ID, Leads: a.node.leadership.office() != 0,
	}, nil
}

func (a *api) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	status := a.node.Status(req.GetHash())
	if req.GetConfirm() {
		status.Confirmed = a.node.confirmConfiguration(ctx) == nil
	}
	return status, nil
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

// lineServer answers the calls that come over lines.
func lineServer(n *Node) *rpc.Server {
	a := &api{node: n}
	return &rpc.Server{
		MaxRequest: maxRequest,
		Malformed:  n.cfg.Metrics.malformed.Inc,
		Methods: map[byte]rpc.Method{
			executeMethod: {Do: answering(n, a.Execute)},
			probeMethod:   {Do: answering(n, a.Probe), Quick: true},
		},
	}
}

// answering does a method with a request that has come. Whoever asks gives up after attemptTimeout.
func answering[Request any, P interface {
	*Request
	proto.Message
}, Reply proto.Message](n *Node, do func(context.Context, P) (Reply, error)) func(context.Context, []byte) (proto.Message, error) {
	return func(ctx context.Context, message []byte) (proto.Message, error) {
		request := P(new(Request))
		if err := proto.Unmarshal(message, request); err != nil {
			n.cfg.Metrics.malformed.Inc()
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return do(ctx, request)
	}
}
