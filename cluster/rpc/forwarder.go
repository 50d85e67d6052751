package rpc

import (
	"context"
	"errors"
	"math"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/budget"
)

// Forwarder forwards requests to the leader. Its connections and limits are separate: forwarded requests take
// no quota from this server's own, and no host takes quota from others.
type Forwarder struct {
	peers   *Peers
	quota   *quota
	cluster func() string // id of this server's; empty: none yet
}

// forwardLimits fit into the leader's quota for one connection (standardLimits).
var forwardLimits = limits{
	what:        "forwarded connections",
	connections: math.MaxInt, connectionsPerHost: math.MaxInt,
	bytes: 16 << 20, bytesPerHost: 4 << 20, bytesPerConnection: 16 << 20,
}

// NewForwarder returns the forwarder of a server. security may be nil.
func NewForwarder(security *Security, cluster func() string) *Forwarder {
	return &Forwarder{peers: NewPeers(security), quota: newQuota(forwardLimits), cluster: cluster}
}

// Close closes the connections.
func (f *Forwarder) Close() {
	f.peers.Close()
	f.quota.close()
}

// Forward sends a request of ctx's caller to the leader at an address. The error is the leader's
// *RefusedError for the caller, or NotForwarded: then the outcome is unknown.
func Forward[Request proto.Message, Reply any](
	ctx context.Context, f *Forwarder, leader string, method func(Node, context.Context, Request) (Reply, error), request Request,
) (reply Reply, err error) {
	caller := CallerOf(ctx)
	origin, err := originFor(caller)
	if err != nil {
		return reply, err
	}
	bytes := callCost + proto.Size(request)
	accounts, _ := f.quota.connect(caller, budget.Replacing)
	defer f.quota.disconnect(caller, budget.Replacing)
	_, urgent := proto.Message(request).(*clusterpb.KeepAliveRequest)
	if !f.quota.acquireWait(ctx, accounts.calls, bytes, timesFor(urgent)) {
		return reply, NotForwarded
	}
	defer f.quota.release(accounts.calls, bytes)
	reply, err = method(f.peers.Node(leader), withDetour(ctx, &clusterpb.Detour{Origin: origin, Cluster: f.cluster()}), request)
	if refused := new(RefusedError); err != nil && !errors.As(err, &refused) {
		return reply, NotForwarded
	}
	return reply, err
}
