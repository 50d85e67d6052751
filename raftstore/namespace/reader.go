package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// reader answers queries.
type reader struct{ *judge }

// What one answer holds at most. That must be clearly less than what a frame takes (rpc.MaxAnswer), whatever users put into their locks.
const (
	answerPage       = 1000    // locks or events
	lockPageBytes    = 1 << 20 // and one more lock
	advisoryPage     = 10_000
	advisoriesOfLock = 1000 // of each
)

// page returns how many locks or events one answer has at most.
func page(limit uint32) int {
	if limit == 0 || limit > answerPage {
		return answerPage
	}
	return int(limit)
}

// nobody answers a query that does not say for whom it is.
func nobody() *storepb.Result {
	return &storepb.Result{Code: storepb.Code_INVALID, Message: "it does not say who wants to know"}
}

// advisoriesOf answers the locks and requests of a file, or of all (0), as far as they are wanted, and so many at most.
func (r reader) advisoriesOf(ino ids.Inode, most int, wanted func(ids.Inode) bool) []*storepb.AdvisoryLock {
	return r.sessions.withHosts(r.locks.List(ino, most, wanted)...)
}

func anyFile(ids.Inode) bool { return true }
