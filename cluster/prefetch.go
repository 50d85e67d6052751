package cluster

import (
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// prefetch has the queries that a mount sends along with a command.
type prefetch struct {
	by        lease.Request
	came      time.Duration // of the command
	questions []*storepb.Query
}

// beginPrefetch runs before a command is proposed. The command lists the leases that this mount has
// dropped; the leader does not wait for those.
func (g *leaseGate) beginPrefetch(by lease.Request, req *clusterpb.ExecuteRequest) prefetch {
	if by.Session == 0 || !g.grants {
		return prefetch{}
	}
	came := monotonic()
	var inodes []ids.Inode
	givenUp, questions := req.GetGivenUp(), req.GetAlso()
	for _, ino := range givenUp[:min(len(givenUp), lease.MaxWithCommand)] {
		inodes = append(inodes, ids.Inode(ino))
	}
	g.table.Dropped(by.Holder, by.Asked, inodes, came)
	return prefetch{by, came, questions[:min(len(questions), lease.MaxWithCommand)]}
}

// answerPrefetch answers the queries of a command as far as leases can be granted; nil: none. The state
// is that after the command, or a later one. Answers that must wait for a revocation are left out. The
// committed command itself confirms the leadership, if this node still leads in its term, and its
// followers report the term by storing it (termReports).
//
// An inode that has just changed is leased only if no other mount uses it.
func (g *leaseGate) answerPrefetch(q prefetch, result *storepb.Result, leads func() bool) []*clusterpb.LeasedAnswer {
	if len(q.questions) == 0 {
		return nil
	}
	answers, given := make([]*clusterpb.LeasedAnswer, len(q.questions)), false
	g.fsm.View(func(ns *namespace.Namespace) {
		for i, question := range q.questions {
			answers[i] = new(clusterpb.LeasedAnswer)
			a := g.answerLeasable(ns, lease.ForCreated(question, result))
			if a == nil {
				continue
			}
			unchanged := lease.QuietPeriod
			if result.GetCode() == storepb.Code_OK && g.table.IsSoleHolder(q.by.Holder, a.inodes, monotonic()) {
				unchanged = 0
			}
			if leased := g.grant(ns, q.by, a, unchanged, q.came); leased.generation != 0 {
				answers[i] = &clusterpb.LeasedAnswer{Result: a.result, Lease: leased.generation, LeaseLasts: int64(leased.lasts)}
				given = true
			}
		}
	})
	if !given || !leads() { // checked after the read, as in query
		return nil
	}
	return answers
}

// answerLeasable answers a query of a leasable kind, unless the answer must wait.
func (g *leaseGate) answerLeasable(ns *namespace.Namespace, question *storepb.Query) *leasableAnswer {
	switch question.GetQuery().(type) {
	case *storepb.Query_Lookup, *storepb.Query_GetAttr, *storepb.Query_Read, *storepb.Query_ReadDir:
	default:
		return nil
	}
	result := ns.Query(question)
	inodes, keyed := namespace.Keys(question, result)
	if !keyed || !g.table.Of(ns.Index(), inodes).IsOver() {
		return nil
	}
	return &leasableAnswer{question, result, inodes}
}
