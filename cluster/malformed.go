package cluster

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// maxRequest bounds what a node reads from the network: a file's content, with room for the rest.
const maxRequest = 1 << 20

var _ stats.Handler = malformedCounter{}

// malformedCounter counts requests that gRPC itself refuses: not protobuf, too large, or of a method
// that is not known.
type malformedCounter struct{ metrics *Metrics }

// TagRPC is part of stats.Handler.
func (malformedCounter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn is part of stats.Handler.
func (malformedCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn is part of stats.Handler.
func (malformedCounter) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC is part of stats.Handler.
func (c malformedCounter) HandleRPC(_ context.Context, s stats.RPCStats) {
	end, ended := s.(*stats.End)
	if !ended || end.Error == nil {
		return
	}
	switch status.Code(end.Error) {
	case codes.Internal, codes.Unimplemented, codes.ResourceExhausted, codes.InvalidArgument:
		c.metrics.malformed.Inc()
	}
}

// noSuchMethod lets the counter see calls of methods that do not exist.
func noSuchMethod(any, grpc.ServerStream) error {
	return status.Error(codes.Unimplemented, "lockfs has no such method")
}
