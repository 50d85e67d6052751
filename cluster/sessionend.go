package cluster

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// endExpired ends the sessions whose TTL is over.
func (s *sessions) endExpired() {
	records := s.live()
	live := make([]ids.Session, len(records))
	active := make(map[ids.Session]ids.Index, len(records))
	for i, record := range records {
		live[i] = ids.Session(record.GetId())
		active[ids.Session(record.GetId())] = ids.Index(record.GetActive())
	}
	for _, id := range s.deadlines.expired(readClocks().mono, live) {
		now := readClocks().mono
		op := &storepb.EndSession{Id: uint64(id), IfActive: uint64(active[id]), LastKeepalive: s.deadlines.get(id, now).keepalive}
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
