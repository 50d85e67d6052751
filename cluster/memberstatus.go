package cluster

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// statusOfMember asks a member for its status. If it does not answer soon, it also asks the other servers
// to ask it: only the direct link may be broken. The error is that of the member itself.
func statusOfMember(
	ctx context.Context, member rpc.Node, id string, others []rpc.Node, asked *clusterpb.StatusRequest,
) (*clusterpb.StatusReply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		reply  *clusterpb.StatusReply
		err    error
		direct bool
	}
	answers := make(chan answer, 1+len(others))
	ask := func(node rpc.Node, request *clusterpb.StatusRequest, direct bool) {
		reply, err := node.Status(ctx, request)
		answers <- answer{reply, err, direct}
	}
	go ask(member, asked, true)
	askOthers := func() {
		through := proto.CloneOf(asked)
		through.Member = id
		for _, other := range others {
			go ask(other, proto.CloneOf(through), false)
		}
	}
	patience := time.NewTimer(connectWait)
	defer patience.Stop()
	var failed error
	for begun, left := false, 1; left > 0 || !begun; {
		select {
		case a := <-answers:
			left--
			if a.err == nil {
				return a.reply, nil
			}
			if a.direct {
				failed = a.err
				patience.Reset(0)
			}
		case <-patience.C:
			if !begun {
				begun, left = true, left+len(others)
				askOthers()
			}
		}
	}
	return nil, failed
}

// Status is part of rpc.Node. A request that names another member goes there, once.
func (f *forwarding) Status(ctx context.Context, req *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	id := req.GetMember()
	if id == "" || id == f.members.dir.ID {
		return f.LeaseKeeper.Status(ctx, req)
	}
	address := f.members.address(id)
	if address == "" {
		return nil, rpc.NotForwarded
	}
	asked := proto.CloneOf(req)
	asked.Member = ""
	reply, err := f.peers.Node(address).Status(ctx, asked)
	if err != nil {
		return nil, rpc.NotForwarded
	}
	return reply, nil
}
