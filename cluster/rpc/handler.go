package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Handler answers a request, of whom [CallerOf] tells. What it is called with is its own to keep. Its error is a [RefusedError], or
// that the request cannot be read.
type Handler struct {
	Do     func(ctx context.Context, request []byte) (proto.Message, error)
	Quick  bool // it never waits, so it is done before the next request is read
	Urgent bool // it has room left when others wait for some
}

func handlersOf(n Node) map[byte]Handler {
	return map[byte]Handler{
		executeMethod:   {Do: handle(n.Execute)},
		probeMethod:     {Do: handle(n.Probe), Quick: true, Urgent: true},
		keepAliveMethod: {Do: handle(n.KeepAlive), Urgent: true},
		leaseMethod:     {Do: handle(n.Lease), Urgent: true},
		sessionsMethod:  {Do: handle(n.Sessions)},
		removalsMethod:  {Do: handle(n.Removals)},
		statusMethod:    {Do: handle(n.Status)},
		joinMethod:      {Do: handle(n.Join)},
		removeMethod:    {Do: handle(n.Remove)},
		changeMethod:    {Do: handle(n.Change)},
		enrollMethod:    {Do: handle(n.Enroll)},
		backupMethod:    {Do: handle(n.Backup)},
		setVoteMethod:   {Do: handle(n.SetVote)},
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
