package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
)

// Handler answers a request, of whom [CallerOf] tells. What it is called with is its own to keep. Its error is a [RefusedError], or
// that the request cannot be read.
type Handler struct {
	Do func(ctx context.Context, request []byte) (proto.Message, error)
	// Keep, if it is there, is in place of Do. It does not wait, and has the answer be told once, at once or later, which does not wait either.
	Keep   func(ctx context.Context, request []byte, answer func(proto.Message, error))
	Quick  bool // it never waits, so it is done before the next request is read
	Urgent bool // it has room left when others wait for some
}

func handlersOf(n Node) map[byte]Handler {
	handlers := map[byte]Handler{
		executeMethod:          {Do: handle(n.Execute)},
		probeMethod:            {Do: handle(n.Probe), Quick: true, Urgent: true},
		keepAliveMethod:        {Do: handle(n.KeepAlive), Urgent: true},
		leaseMethod:            {Do: handle(n.Lease), Urgent: true},
		sessionsMethod:         {Do: handle(n.Sessions)},
		removalsMethod:         {Do: handle(n.Removals)},
		awaitReleaseMethod:     {Do: handle(n.AwaitRelease)},
		releaseQuestionsMethod: {Do: handle(n.ReleaseQuestions)},
		endedWaitsMethod:       {Do: handle(n.EndedWaits)},
		statusMethod:           {Do: handle(n.Status)},
		joinMethod:             {Do: handle(n.Join)},
		removeMethod:           {Do: handle(n.Remove)},
		changeMethod:           {Do: handle(n.Change)},
		enrollMethod:           {Do: handle(n.Enroll)},
		backupMethod:           {Do: handle(n.Backup)},
		setVoteMethod:          {Do: handle(n.SetVote)},
		proveServerMethod:      {Do: handle(n.ProveServer), Urgent: true},
	}
	if keeper, keeps := n.(LeaseKeeper); keeps {
		handlers[leaseMethod] = Handler{Keep: keep(keeper), Urgent: true}
	}
	return handlers
}

func keep(k LeaseKeeper) func(context.Context, []byte, func(proto.Message, error)) {
	return func(ctx context.Context, data []byte, answer func(proto.Message, error)) {
		request := new(clusterpb.LeaseRequest)
		if err := proto.Unmarshal(data, request); err != nil {
			answer(nil, err)
			return
		}
		k.KeepLease(ctx, request, func(reply *clusterpb.LeaseReply, err error) { answer(reply, err) })
	}
}

// message is a pointer to a kind of message.
type message[T any] interface {
	*T
	proto.Message
}

// handle does a method with a request that has come.
func handle[Request any, P message[Request], Reply proto.Message](
	do func(context.Context, P) (Reply, error),
) func(context.Context, []byte) (proto.Message, error) {
	return func(ctx context.Context, data []byte) (proto.Message, error) {
		request := P(new(Request))
		if err := proto.Unmarshal(data, request); err != nil {
			return nil, err
		}
		return do(ctx, request)
	}
}
