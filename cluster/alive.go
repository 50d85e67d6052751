package cluster

import (
	"context"
	"net"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// aliveTimeout is for how long a member is given to answer.
const aliveTimeout = 2 * time.Second

// SeenAlive tells whether somebody answers at a member's address who does not say to be another node. security may be nil.
func SeenAlive(ctx context.Context, member *storepb.Member, security *rpc.Security) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*aliveTimeout)
	defer cancel()
	dialer := net.Dialer{Timeout: aliveTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", member.GetAddress())
	if err != nil {
		return false
	}
	_ = conn.Close()
	peer := rpc.NewRemote(member.GetAddress(), security)
	defer peer.Close()
	reply, err := peer.Probe(ctx, &clusterpb.ProbeRequest{})
	return err != nil || reply.GetId() == member.GetId()
}
