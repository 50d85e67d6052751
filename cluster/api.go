package cluster

import (
	"context"
	"net/netip"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

var _ rpc.Node = (*Node)(nil)

// Probe tells the term and the wall clock.
func (n *Node) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return &clusterpb.ProbeReply{
		Term: n.raft.CurrentTerm(), WallClock: readClocks().wall, Id: n.id.ID, Leads: n.leadership.office() != 0,
	}, nil
}

// crowded counts a connection that there was no room for.
func (n *Node) crowded(from netip.Addr) {
	n.cfg.Metrics.crowded.Inc()
	n.tooMany.Do(func() { n.logger.Warn("too many connections: some are refused", "from", from) })
}
