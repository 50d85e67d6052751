package namespace

import (
	"lockfs/raftstore/advisory"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// queryEngine answers queries.
type queryEngine struct{ *evaluator }

// Limits of one answer. They must be clearly less than a frame (rpc.MaxAnswer), whatever users write into
// their locks.
const (
	answerPage       = 1000    // locks or events
	lockPageBytes    = 1 << 20 // and one more lock
	advisoryPage     = 10_000
	advisoriesOfLock = 1000 // of each
)

func page(limit uint32) int {
	if limit == 0 || limit > answerPage {
		return answerPage
	}
	return int(limit)
}

// Refuses a query without a viewer.
func missingViewer() *storepb.Result {
	return &storepb.Result{Code: storepb.Code_INVALID, Message: "the query has no viewer"}
}

// advisoriesOf returns at most this many wanted locks and requests of a file, or of all files (0).
func (r queryEngine) advisoriesOf(ino ids.Inode, most int, wanted func(ids.Inode) bool) []*storepb.AdvisoryLock {
	return r.sessions.withHosts(r.locks.List(ino, most, wanted)...)
}

func anyFile(ids.Inode) bool { return true }

// testLock answers F_GETLK.
func (r queryEngine) testLock(q *storepb.TestLock) *storepb.Result {
	want, valid := advisory.Want(ids.Session(q.GetSession()), 0, budget.User{}, q.GetLock())
	if !valid {
		return fail(storepb.Code_INVALID)
	}
	result := ok()
	if inTheWay := r.locks.Test(want); inTheWay != nil {
		result.AdvisoryLocks = r.sessions.withHosts(inTheWay)
	}
	return result
}

func (r queryEngine) listAdvisories(q *storepb.ListAdvisoryLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return missingViewer()
	}
	view := r.viewOf(q.GetViewer())
	return &storepb.Result{AdvisoryLocks: r.advisoriesOf(ids.Inode(q.GetIno()), advisoryPage, func(of ids.Inode) bool {
		return (q.GetIno() != 0 || !r.tree.isUnlisted(of)) && view.advisories(of)
	})}
}
