package rpc

import (
	"context"
	"errors"
	"math"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/budget"
)

// Forwarder forwards requests to the leader. It has connections of its own, and bounds the requests that each host has under way on them:
// forwarded requests take no room from those of this server, and a host takes none from others.
type Forwarder struct {
	peers   *Peers
	quota   *quota
	cluster func() string // id of this server's; empty: it has none yet
}

// forwardLimits are such that the forwarded requests fit the room that the leader has for one connection (standardLimits).
var forwardLimits = limits{
	what:        "forwarded connections",
	connections: math.MaxInt, connectionsPerHost: math.MaxInt,
	bytes: 16 << 20, bytesPerHost: 4 << 20, bytesPerConnection: 16 << 20,
}

// NewForwarder returns one for a server of a cluster, whose connections are made with security, which may be nil.
func NewForwarder(security *Security, cluster func() string) *Forwarder {
	return &Forwarder{peers: NewPeers(security), quota: newQuota(forwardLimits), cluster: cluster}
}

// Close ends the connections.
func (f *Forwarder) Close() {
	f.peers.Close()
	f.quota.close()
}

// Forward has the leader at an address do a request of the caller that ctx names. The error is a *RefusedError that the leader has told
// the caller, or NotForwarded: then the request may have been done all the same.
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
