package cluster

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// sessions is the leader's work for the sessions of mounts.
type sessions struct {
	leaseGate     *leaseGate
	ctx           context.Context // ends when the node is closed
	deadlines     *sessionDeadlines
	fsm           *raftstore.FSM
	members       *members
	leadership    *leadership
	readIndex     *readIndex
	clock         *clock
	proposer      *proposer
	identityCheck *identityCheck
	clones        *clones
	rosters       *rosters
	logger        *slog.Logger

	look []namespace.LiveSession // what endExpired has seen last
}

// keepAlive renews a session if this node leads, confirmed by a majority: a deposed leader must not
// promise anything unknown to its successor. The TTL counts from the time the mount sent the request.
func (s *sessions) keepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	came := readClocks().mono
	term, leader := s.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	if err := s.readIndex.confirm(ctx); err != nil {
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	squashed, err := s.identityCheck.checkSession(rpc.CallerOf(ctx), ids.Session(req.GetSession()))
	if err != nil {
		return nil, err
	}
	reply := &clusterpb.KeepAliveReply{SquashRoot: squashed, Ttl: int64(s.deadlines.ttl), ClusterTime: s.clock.Now(), Leader: s.members.dir.Name, Leases: s.leaseGate.grants}
	reply.Voters = s.members.raft.VotersNumber() // read first: a later change makes the mount ask again
	reply.Servers = s.members.addresses()
	reply.OldestVersion, reply.NewestVersion = s.members.versions.Oldest, s.members.versions.Newest
	alive := false
	s.fsm.View(func(ns *namespace.Namespace) {
		alive = ns.SessionLive(ids.Session(req.GetSession()))
		reply.ClusterVersion = ns.Version()
		reply.Authority = ns.SigningAuthority().GetAuthority().GetFingerprint()
		reply.Roster = s.rosters.of(ns, time.Unix(0, reply.GetClusterTime()))
	})
	if reply.GetRoster().GetVersion() == req.GetRoster() {
		reply.Roster = nil
	}
	if s.leadership.term() != term {
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	if !alive && s.leaseGate.waitAllRevoked(ctx) != nil { // other mounts see the locks of the session as released
		return &clusterpb.KeepAliveReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	if alive {
		s.clones.speaks(ids.Session(req.GetSession()), rpc.CallerOf(ctx), came)
	}
	reply.Ended = !alive || !s.deadlines.renew(ids.Session(req.GetSession()), came, reply.GetClusterTime(), time.Duration(req.GetClockOffset()), req.GetProgram())
	return reply, nil
}

// list lists the mounts if this node leads.
func (s *sessions) list(ctx context.Context) *clusterpb.SessionsReply {
	term, leader := s.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if err := s.readIndex.confirm(ctx); err != nil {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	records := s.live()
	if s.leadership.term() != term {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	if s.leaseGate.waitAllRevoked(ctx) != nil {
		return &clusterpb.SessionsReply{Outcome: clusterpb.Outcome_NOT_DONE}
	}
	reply := new(clusterpb.SessionsReply)
	now := readClocks().mono
	for _, record := range records {
		known := s.deadlines.get(ids.Session(record.GetId()), now)
		reply.Sessions = append(reply.Sessions, &clusterpb.Session{
			Record: record, Silent: int64(now - known.renewed), ClockOffset: int64(known.offset), Program: known.program,
		})
	}
	return reply
}

func (s *sessions) live() []*storepb.SessionRecord {
	result, err := s.fsm.Query(&storepb.Query{Query: &storepb.Query_ListSessions{}})
	if err != nil {
		return nil // this node is about to end
	}
	return result.GetSessions()
}

// hasActiveMount reports whether a mount of a host has sent a keepalive within half a TTL. A new leader
// knows of none yet.
func (s *sessions) hasActiveMount(host string, now time.Duration) bool {
	var live []namespace.LiveSession
	s.fsm.View(func(ns *namespace.Namespace) { live = ns.LiveSessions(nil) })
	return slices.ContainsFunc(live, func(session namespace.LiveSession) bool {
		return session.Host == host && now-s.deadlines.get(session.ID, now).renewed < s.deadlines.ttl/2
	})
}

// endExpired ends the sessions whose TTL is over. It takes less than a millisecond for 10,000 sessions.
func (s *sessions) endExpired() {
	s.look = s.look[:0]
	s.fsm.View(func(ns *namespace.Namespace) { s.look = ns.LiveSessions(s.look) })
	for _, over := range s.deadlines.expired(readClocks().mono, s.look) {
		id := over.ID
		op := &storepb.EndSession{Id: uint64(id), IfActive: uint64(over.Active), LastKeepalive: s.deadlines.get(id, readClocks().mono).keepalive}
		result, err := s.proposer.propose(s.ctx, &storepb.Op{Op: &storepb.Op_EndSession{EndSession: op}})
		switch {
		case err != nil:
			s.logger.Warn("a session's end was not recorded", "session", id, "error", err)
			return // the next one would wait as long; all of them are still due
		case result.GetCode() == storepb.Code_CONFLICT:
			s.deadlines.cancelEnding(id, readClocks().mono)
		default:
			s.logger.Info("session ended: no keepalive within its TTL", "session", id)
		}
	}
}
