package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
)

// Handler handles requests of one method. [CallerOf] returns the caller. The handler owns the request's
// bytes. Its error is a [RefusedError], or means: the request cannot be decoded.
type Handler struct {
	Do func(ctx context.Context, request []byte) (proto.Message, error)
	// Keep, if set, replaces Do. It calls answer once, now or later. Neither waits.
	Keep   func(ctx context.Context, request []byte, answer func(proto.Message, error))
	Quick  bool // it never waits, and runs before the next request is read
	Urgent bool // it may exceed the limits
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

// message is a pointer to a message type.
type message[T any] interface {
	*T
	proto.Message
}

// handle adapts a method to a Handler.
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
