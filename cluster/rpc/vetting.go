package rpc

import (
	"context"
	"errors"

	"lockfs/cluster/clusterpb"
)

// Vetting decides about one server for as long as a connection to it lasts. It is safe for concurrent use.
type Vetting interface {
	// Refused is an error for a server that is not to be asked anything any more. It is called before and after each call.
	Refused() error
	// Prove has the server prove that it is one of the cluster now, unless that is known. It is called before each call that does not come
	// with [Unproven]. The error is that the server does not.
	Prove(ctx context.Context, ask func(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error)) error
}

// ErrUnproven is in errors of Vetting.Prove about a server that has not proven its membership.
var ErrUnproven = errors.New("the server does not prove that it is one of the cluster")

type unprovenKey struct{}

// Unproven has calls be made to servers that do not prove that they are servers of the cluster now, which they cannot without a leader. It is for
// questions of people, who judge the answers.
func Unproven(ctx context.Context) context.Context {
	return context.WithValue(ctx, unprovenKey{}, true)
}
