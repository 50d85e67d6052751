package cluster

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// sessionLook is how often the leader looks for sessions whose term is over.
const sessionLook = 500 * time.Millisecond

// KeepAlive renews a session if this node leads, as a majority confirms: a deposed leader must not
// promise what its successor does not know of. The session lasts from when the mount sent the request.
func (n *Node) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	came := readClocks().mono
	term, leader := n.awaitLeader(ctx)
	if term == 0 {
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	if err := n.confirmer.confirm(ctx); err != nil {
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	reply := &clusterpb.KeepAliveReply{Term: int64(n.terms.term), ClusterTime: n.clock.Now(), Leader: n.id.Name}
	for _, voter := range n.voters() {
		if voter.GetApiAddress() != "" {
			reply.Servers = append(reply.Servers, voter.GetApiAddress())
		}
	}
	alive := false
	n.fsm.View(func(ns *raftstore.Namespace) { alive = ns.SessionLive(req.GetSession()) })
	reply.Ended = !alive || !n.terms.renew(req.GetSession(), came, reply.GetClusterTime(), time.Duration(req.GetClockOffset()))
	return reply, nil
}

// Sessions lists the mounts if this node leads.
func (n *Node) Sessions(ctx context.Context, _ *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	term, leader := n.awaitLeader(ctx)
	if term == 0 {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	if err := n.confirmer.confirm(ctx); err != nil {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	reply := new(clusterpb.SessionsReply)
	now := readClocks().mono
	for _, record := range n.liveSessions() {
		known := n.terms.get(record.GetId(), now)
		reply.Sessions = append(reply.Sessions, &clusterpb.Session{
			Record: record, Silent: int64(now - known.renewed), ClockOffset: int64(known.offset),
		})
	}
	return reply, nil
}

func (n *Node) liveSessions() []*storepb.SessionRecord {
	result, err := n.fsm.Query(&storepb.Query{Query: &storepb.Query_ListSessions{}})
	if err != nil {
		return nil // this node is about to end
	}
	return result.GetSessions()
}

// endExpired gives up on the sessions that were not renewed.
func (n *Node) endExpired() {
	records := n.liveSessions()
	live := make([]uint64, len(records))
	active := make(map[uint64]uint64, len(records))
	for i, record := range records {
		live[i] = record.GetId()
		active[record.GetId()] = record.GetActive()
	}
	for _, id := range n.terms.expired(readClocks().mono, live) {
		now := readClocks().mono
		op := &storepb.EndSession{Id: id, IfActive: active[id], LastKeepalive: n.terms.get(id, now).keepalive}
		result, err := n.proposeCluster(n.ctx, &storepb.Op{Op: &storepb.Op_EndSession{EndSession: op}})
		switch {
		case err != nil:
			n.logger.Warn("a session's end was not recorded", "session", id, "error", err)
		case result.GetCode() == storepb.Code_CONFLICT:
			n.terms.spare(id, readClocks().mono)
		default:
			n.logger.Info("session ended: no keepalive for its term", "session", id)
		}
	}
}
