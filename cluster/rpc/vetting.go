package rpc

import (
	"context"
	"errors"

	"lockfs/cluster/clusterpb"
)

// Vetting decides about one server for the life of a connection. It is safe for concurrent use.
type Vetting interface {
	// Refused returns an error for a server which must not get calls. Clients call it before and after each
	// call.
	Refused() error
	// Prove makes the server prove its membership, unless it is known. Clients call it before each call
	// without [Unproven].
	Prove(ctx context.Context, ask func(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error)) error
}

// ErrUnproven is wrapped by errors of Vetting.Prove about a server without a proof.
var ErrUnproven = errors.New("the server does not prove that it is one of the cluster")

type unprovenKey struct{}

// Unproven allows calls to servers without a proof of membership, which takes a leader. It is for commands
// with users to judge the answers.
func Unproven(ctx context.Context) context.Context {
	return context.WithValue(ctx, unprovenKey{}, true)
}
