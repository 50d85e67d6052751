package namespace

import (
	"lockfs/raftstore/advisory"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// testLock answers F_GETLK.
func (r reader) testLock(q *storepb.TestLock) *storepb.Result {
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

func (r reader) listAdvisories(q *storepb.ListAdvisoryLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return nobody()
	}
	view := r.viewOf(q.GetViewer())
	return &storepb.Result{AdvisoryLocks: r.advisoriesOf(ids.Inode(q.GetIno()), advisoryPage, func(of ids.Inode) bool {
		return (q.GetIno() != 0 || !r.tree.isUnlisted(of)) && view.advisories(of)
	})}
}
