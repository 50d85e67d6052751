package advisory

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Take is flock(2), and fcntl(2) with F_SETLK or F_SETLKW, as a session's command requests it. It returns
//
//	OK           it is locked, or unlocked
//	WAITING      it is in the queue
//	WOULD_BLOCK  it should not wait; also returns a conflicting lock
//	DEADLOCK     it would wait for itself
//	NO_LOCKS     requests of its user wait for [MostRanges] other ranges of the file
//
// A conversion of an flock to the other type gives up the flock in any case.
func (t *Table) Take(want *Wanted) (storepb.Code, *storepb.AdvisoryLock) {
	if want.unlock {
		t.release(&want.lock)
		return storepb.Code_OK, nil
	}
	asked := want.lock
	asked.since = t.now
	return t.grantOrQueue(&asked, want)
}

func (t *Table) release(want *lock) {
	t.setRange(want, false)
	t.serve()
}

func (t *Table) grantOrQueue(want *lock, how *Wanted) (storepb.Code, *storepb.AdvisoryLock) {
	again := t.interruptedRequest(want)
	if want.kind == storepb.LockKind_FLOCK {
		t.dropToConvert(want)
	}
	request := &waiter{lock: *want, position: t.index, byProcess: how.byProcess}
	if again != nil {
		t.deleteWaiter(again)
		request.position, request.since = again.position, again.since
	}
	inTheWay := t.heldAgainst(want)
	if inTheWay == nil && (!how.wait || t.queuedAgainst(request) == nil) {
		t.setRange(want, true)
		t.serve() // less may be locked now than before
		return storepb.Code_OK, nil
	}
	if !how.wait {
		return storepb.Code_WOULD_BLOCK, inTheWay.message()
	}
	if !t.counts.hasRoomForRange(want) {
		return storepb.Code_NO_LOCKS, nil
	}
	t.putAmid(request)
	if t.isDeadlock(request) {
		t.deleteWaiter(request)
		t.serve()
		return storepb.Code_DEADLOCK, nil
	}
	t.serve()
	return storepb.Code_WAITING, nil
}

// dropToConvert gives up an flock before its conversion to the other type. Others may get theirs in between
// (flock(2)). Otherwise two holders that both convert to exclusive would wait for each other.
func (t *Table) dropToConvert(want *lock) {
	own := t.ownedBy(want)
	if len(own) == 0 || own[0].exclusive == want.exclusive {
		return
	}
	t.deleteLock(own[0])
	t.serve()
}

// Excludes reports whether an owner has a lock in the way of another owner's request.
func (t *Table) Excludes(session ids.Session, owner ids.Owner, want *Wanted) bool {
	of := want.lock
	of.session, of.owner = session, owner
	return slices.ContainsFunc(t.ownedIn(&of), func(a *lock) bool { return a.excludes(&want.lock) })
}

// Test is F_GETLK: it returns a conflicting lock, or nil.
func (t *Table) Test(want *Wanted) *storepb.AdvisoryLock {
	if inTheWay := t.heldAgainst(&want.lock); inTheWay != nil {
		return inTheWay.message()
	}
	return nil
}
