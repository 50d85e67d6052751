package rpc

import (
	"context"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
)

type (
	receivedDetourKey struct{} // of a received request: its *clusterpb.Detour
	detourKey         struct{} // of requests to send: a *clusterpb.Detour without the request
)

// Unreachable returns the address of the leader if the caller cannot reach it: this node then forwards the
// request. Empty: it does not.
func Unreachable(ctx context.Context) string { return receivedDetour(ctx).GetUnreachable() }

// ClusterOf returns the id of the cluster permitted to do a detoured request; empty: any.
func ClusterOf(ctx context.Context) string { return receivedDetour(ctx).GetCluster() }

// withReceivedDetour marks a request as received by a detour.
func withReceivedDetour(ctx context.Context, detour *clusterpb.Detour) context.Context {
	return context.WithValue(ctx, receivedDetourKey{}, &clusterpb.Detour{Unreachable: detour.GetUnreachable(), Cluster: detour.GetCluster()})
}

func receivedDetour(ctx context.Context) *clusterpb.Detour {
	detour, _ := ctx.Value(receivedDetourKey{}).(*clusterpb.Detour)
	return detour
}

// withDetour makes the requests of a context detoured ones.
func withDetour(ctx context.Context, detour *clusterpb.Detour) context.Context {
	return context.WithValue(ctx, detourKey{}, detour)
}

// inDetour wraps a request into its context's detour, if there is one and only the leader does the method.
func inDetour(ctx context.Context, method byte, request, reply proto.Message) (kind byte, message proto.Message, err error) {
	detour, _ := ctx.Value(detourKey{}).(*clusterpb.Detour)
	if _, ofLeader := reply.(Answer); detour == nil || !ofLeader {
		return method, request, nil
	}
	inner, err := proto.Marshal(request)
	return method | detourFlag, &clusterpb.Detour{
		Request: inner, Unreachable: detour.GetUnreachable(), Origin: detour.GetOrigin(), Cluster: detour.GetCluster(),
	}, err
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

// callerFrom is the inverse of originFor.
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
