package cluster

import (
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// sequel is what a mount asks with a command.
type sequel struct {
	by        lease.Request
	came      time.Duration // the command
	questions []*storepb.Query
}

// expect is called before a command is proposed, whose mount has dropped what it says.
func (s *shown) expect(by lease.Request, req *clusterpb.ExecuteRequest) sequel {
	if by.Session == 0 || !s.gives {
		return sequel{}
	}
	came := monotonic()
	var inodes []ids.Inode
	givenUp, questions := req.GetGivenUp(), req.GetAlso()
	for _, ino := range givenUp[:min(len(givenUp), lease.MostWithCommand)] {
		inodes = append(inodes, ids.Inode(ino))
	}
	s.table.GivenUp(by.Holder, by.Asked, inodes, came)
	return sequel{by, came, questions[:min(len(questions), lease.MostWithCommand)]}
}

// follow answers the questions that came with a command, as far as there are leases on the answers; nil: on none. The state is that after the
// command, or a later one; what of that must not be shown yet is not answered, so that nobody waits. The command itself has confirmed that
// this node led when it came: a majority has stored it since in this node's term, if that leads in it still. Whoever follows it waits
// from then on (words).
//
// What has just changed is leased only if no other mount has to do with it.
func (s *shown) follow(q sequel, result *storepb.Result, leads func() bool) []*clusterpb.LeasedAnswer {
	if len(q.questions) == 0 {
		return nil
	}
	answers, given := make([]*clusterpb.LeasedAnswer, len(q.questions)), false
	s.fsm.View(func(ns *namespace.Namespace) {
		for i, question := range q.questions {
			answers[i] = new(clusterpb.LeasedAnswer)
			a := s.answer(ns, lease.OfMade(question, result))
			if a == nil {
				continue
			}
			unchanged := lease.Quiet
			if result.GetCode() == storepb.Code_OK && s.table.IsAlone(q.by.Holder, a.inodes, monotonic()) {
				unchanged = 0
			}
			if leased := s.give(ns, q.by, a, unchanged, q.came); leased.generation != 0 {
				answers[i] = &clusterpb.LeasedAnswer{Result: a.result, Lease: leased.generation, LeaseLasts: int64(leased.lasts)}
				given = true
			}
		}
	})
	if !given || !leads() { // which is looked at after the read, as in query
		return nil
	}
	return answers
}

// answer answers a question of a kind that is leased, unless that must not be shown yet.
func (s *shown) answer(ns *namespace.Namespace, question *storepb.Query) *answered {
	switch question.GetQuery().(type) {
	case *storepb.Query_Lookup, *storepb.Query_GetAttr, *storepb.Query_Read, *storepb.Query_ReadDir:
	default:
		return nil
	}
	result := ns.Query(question)
	inodes, keyed := namespace.Keys(question, result)
	if !keyed || len(s.table.Of(ns.Index(), inodes)) > 0 {
		return nil
	}
	return &answered{question, result, inodes}
}
