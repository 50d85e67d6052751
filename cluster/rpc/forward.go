package rpc

import (
	"context"
	"errors"
	"math"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
)

// detourFlag is part of the kind of a request frame whose message is a clusterpb.Detour.
const detourFlag byte = 0x80

// isForwardable reports whether a server forwards requests of a method: those that only the leader does.
func isForwardable(method byte) bool {
	switch method {
	case executeMethod, keepAliveMethod, leaseMethod, sessionsMethod, joinMethod, removeMethod, changeMethod, enrollMethod, setVoteMethod:
		return true
	}
	return false
}

type (
	cameByKey struct{} // of a request that was received: its *clusterpb.Detour
	detourKey struct{} // of a request to be sent: its *clusterpb.Detour, without the request
)

// Unreachable returns the address at which the caller of a request cannot reach the leader, and so asks for its request to be
// forwarded; empty: it does not ask.
func Unreachable(ctx context.Context) string { return cameBy(ctx).GetUnreachable() }

// ClusterOf returns the id of the cluster that is to do a request that came by a detour; empty: any.
func ClusterOf(ctx context.Context) string { return cameBy(ctx).GetCluster() }

func cameBy(ctx context.Context) *clusterpb.Detour {
	detour, _ := ctx.Value(cameByKey{}).(*clusterpb.Detour)
	return detour
}

// withDetour has the requests that are sent with a context be to be forwarded, or forwarded ones.
func withDetour(ctx context.Context, detour *clusterpb.Detour) context.Context {
	return context.WithValue(ctx, detourKey{}, detour)
}

// inDetour returns a request as it is to be sent with a context: in a detour if the context says so.
func inDetour(ctx context.Context, method byte, request proto.Message) (kind byte, message proto.Message, err error) {
	detour, _ := ctx.Value(detourKey{}).(*clusterpb.Detour)
	if detour == nil || !isForwardable(method) {
		return method, request, nil
	}
	inner, err := proto.Marshal(request)
	return method | detourFlag, &clusterpb.Detour{
		Request: inner, Unreachable: detour.GetUnreachable(), Origin: detour.GetOrigin(), Cluster: detour.GetCluster(),
	}, err
}

// AcceptForwarded has the server accept requests that another server forwards. judge returns nil if that server, by, may forward a request
// of the caller, or MayNotForward, or a *RefusedError that tells the caller why it is refused itself. Without it, no forwarded request is
// accepted. It is to be called before the server serves.
func (s *Server) AcceptForwarded(judge func(by, caller Caller) error) { s.judge = judge }

// unwrap returns the request of a detour, with the context to do it in: its caller is the one that is to be judged.
func (c *serving) unwrap(ctx context.Context, method byte, message []byte) (context.Context, []byte, error) {
	detour := new(clusterpb.Detour)
	if err := proto.Unmarshal(message, detour); err != nil || !isForwardable(method) {
		return nil, nil, Malformed
	}
	asks, origin := detour.GetUnreachable() != "", detour.GetOrigin()
	ctx = context.WithValue(ctx, cameByKey{}, &clusterpb.Detour{Unreachable: detour.GetUnreachable(), Cluster: detour.GetCluster()})
	switch {
	case asks == (origin != nil): // a forwarded request is not forwarded again
		return nil, nil, Malformed
	case asks:
		return ctx, detour.GetRequest(), nil
	case c.judge == nil:
		return nil, nil, MayNotForward
	}
	caller, err := callerFrom(origin)
	if err != nil {
		return nil, nil, Malformed
	}
	caller.Forwarder = c.caller.Host
	if caller.Forwarder == "" {
		caller.Forwarder = c.caller.Address.String()
	}
	if err := c.judge(c.caller, caller); err != nil {
		return nil, nil, err
	}
	return WithCaller(ctx, caller), detour.GetRequest(), nil
}

var originRoles = map[Role]clusterpb.Origin_Role{
	RoleInsecure: clusterpb.Origin_INSECURE, RoleJoiner: clusterpb.Origin_JOINER, RoleClient: clusterpb.Origin_CLIENT, RoleServer: clusterpb.Origin_SERVER,
}

// originFor describes a caller to the leader.
func originFor(caller Caller) (*clusterpb.Origin, error) {
	role, known := originRoles[caller.Role]
	if !known || caller.Forwarder != "" {
		return nil, NotForwarded
	}
	origin := &clusterpb.Origin{Role: role, Host: caller.Host}
	if caller.Key != [32]byte{} {
		origin.Key = caller.Key[:]
	}
	if caller.Address.IsValid() {
		origin.Address = caller.Address.String()
	}
	return origin, nil
}

// callerFrom is the opposite of originFor.
func callerFrom(origin *clusterpb.Origin) (Caller, error) {
	caller := Caller{Host: origin.GetHost()}
	known := false
	for role, number := range originRoles {
		if number == origin.GetRole() {
			caller.Role, known = role, true
		}
	}
	if !known || copy(caller.Key[:], origin.GetKey()) != len(origin.GetKey()) {
		return Caller{}, Malformed
	}
	if origin.GetAddress() != "" {
		address, err := netip.ParseAddr(origin.GetAddress())
		if err != nil {
			return Caller{}, Malformed
		}
		caller.Address = address
	}
	return caller, nil
}

// Forwarder forwards requests to the leader. It has connections of its own, and bounds the requests that each host has under way on them:
// forwarded requests take no room from those of this server, and a host takes none from others.
type Forwarder struct {
	peers   *Peers
	room    *room
	cluster func() string // id of this server's; empty: it has none yet
}

// forwardLimits are such that the forwarded requests fit the room that the leader has for one connection (standardLimits).
var forwardLimits = limits{
	connections: math.MaxInt, connectionsPerHost: math.MaxInt,
	bytes: 16 << 20, bytesPerHost: 4 << 20, bytesPerConnection: 16 << 20,
}

// NewForwarder returns one for a server of a cluster, whose connections are made with security, which may be nil.
func NewForwarder(security *Security, cluster func() string) *Forwarder {
	return &Forwarder{peers: NewPeers(security), room: newRoom(forwardLimits), cluster: cluster}
}

// Close ends the connections.
func (f *Forwarder) Close() {
	f.peers.Close()
	f.room.close()
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
	from, bytes := originOf(caller), callCost+proto.Size(request)
	accounts, _ := f.room.enter(from, true)
	defer f.room.leave(from)
	_, urgent := proto.Message(request).(*clusterpb.KeepAliveRequest)
	if !f.room.draw(ctx, accounts.calls, bytes, timesFor(urgent)) {
		return reply, NotForwarded
	}
	defer f.room.give(accounts.calls, bytes)
	reply, err = method(f.peers.Node(leader), withDetour(ctx, &clusterpb.Detour{Origin: origin, Cluster: f.cluster()}), request)
	if refused := new(RefusedError); err != nil && !errors.As(err, &refused) {
		return reply, NotForwarded
	}
	return reply, err
}
