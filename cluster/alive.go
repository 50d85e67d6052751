package cluster

import (
	"context"
	"net"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// aliveTimeout is for how long a member is given to answer at each address.
const aliveTimeout = 2 * time.Second

// SeenAlive tells whether somebody answers at one of a member's addresses who does not say to be another node.
func SeenAlive(ctx context.Context, member *storepb.Member) bool {
	if address := member.GetApiAddress(); address != "" {
		peer := rpc.NewRemote(address)
		defer peer.Close()
		asking, cancel := context.WithTimeout(ctx, aliveTimeout)
		defer cancel()
		if reply, err := peer.Probe(asking, &clusterpb.ProbeRequest{}); err == nil {
			return reply.GetId() == member.GetId()
		}
	}
	for _, address := range []string{member.GetApiAddress(), member.GetRaftAddress()} {
		dialer := net.Dialer{Timeout: aliveTimeout}
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}
