package cluster

import (
	"context"

	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

var (
	_ session.Voter = (*Node)(nil)
	_ rpc.Guide     = (*Node)(nil)
)

// OpenClient opens a session through this node. It waits for a leader until ctx ends or the node fails.
func (n *Node) OpenClient(ctx context.Context, cfg session.Config) (client *session.Client, err error) {
	cfg.Versions = n.cfg.versions
	err = n.unlessFailed(ctx, func(ctx context.Context) (err error) {
		client, err = session.Open(ctx, n, n.peers, cfg)
		return err
	})
	return client, err
}

// Adopt connects a client to this node that was dialed before the node was there.
func (n *Node) Adopt(client *session.Client) { client.Attach(n, n.peers) }

// QuerySince answers from this node's own state if it is new enough for the query; else nil.
func (n *Node) QuerySince(query *storepb.Query) *storepb.Result { return n.fsm.QuerySince(query) }

// Servers is part of rpc.Guide.
func (n *Node) Servers() (others []string) {
	for _, voter := range n.members.voters() {
		if voter.GetId() != n.dir.ID && voter.GetAddress() != "" {
			others = append(others, voter.GetAddress())
		}
	}
	return others
}

// ClusterID is part of rpc.Guide.
func (n *Node) ClusterID() string { return n.dir.ClusterID() }

// FollowLeader reports the address of each new leader until ctx ends; "": this node.
func (n *Node) FollowLeader(ctx context.Context, leads func(address string)) {
	var lastID, lastAddress string
	for {
		changed := n.leadership.change()
		leader, address := n.members.leader()
		switch {
		case leader == "", leader == lastID && address == lastAddress:
		case leader == n.dir.ID:
			lastID, lastAddress = leader, address
			leads("")
		default:
			lastID, lastAddress = leader, address
			leads(address)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// TermReport returns this node's id, instance and term.
func (n *Node) TermReport() (id string, instance ids.Instance, term ids.Term) {
	term, _ = n.termReports.report()
	return n.dir.ID, n.dir.Instance(), term
}
