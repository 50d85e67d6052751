package cluster

import (
	"context"

	"github.com/hashicorp/raft"

	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

var _ session.Voter = (*Node)(nil)

// OpenClient opens a session through this node. It waits for a leader until ctx ends, or the node cannot go on.
func (n *Node) OpenClient(ctx context.Context, cfg session.Config) (client *session.Client, err error) {
	cfg.Versions = n.cfg.versions
	err = n.whileSound(ctx, func(ctx context.Context) (err error) {
		client, err = session.Open(ctx, n, n.peers, cfg)
		return err
	})
	return client, err
}

// QuerySince answers from this node's own state if that is new enough for the query, which says so; else nil.
func (n *Node) QuerySince(query *storepb.Query) *storepb.Result { return n.fsm.QuerySince(query) }

// FollowLeader tells of each leader that this node learns of by its address, of itself by none, until ctx ends.
func (n *Node) FollowLeader(ctx context.Context, leads func(address string)) {
	var last raft.ServerID
	for {
		changed := n.leadership.change()
		_, leader := n.raft.LeaderWithID()
		address, itself := n.members.address(string(leader)), string(leader) == n.dir.ID
		switch {
		case leader == last:
		case itself:
			last = leader
			leads("")
		case address != "": // else there is none, or no more is known of it than that it is there
			last = leader
			leads(address)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Word is this node's id and the term that it is in now.
func (n *Node) Word() (id string, term ids.Term) { return n.dir.ID, ids.Term(n.raft.CurrentTerm()) }
