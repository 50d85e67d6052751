package advisory

import (
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Await returns the outcome of a request: WAITING, OK if its owner has the requested range, else NOT_FOUND.
// INVALID: no kernel makes such a request.
func (t *Table) Await(q *storepb.AwaitLock) storepb.Code {
	session, seq := ids.Session(q.GetSession()), ids.Sequence(q.GetSeq())
	if w, waiting := t.request(session, seq); waiting {
		if w.interrupted != 0 {
			return storepb.Code_NOT_FOUND
		}
		return storepb.Code_WAITING
	}
	return t.whetherHeld(session, seq, &storepb.TakeLock{
		Ino: q.GetIno(), Kind: q.GetKind(), Owner: q.GetOwner(), Type: q.GetType(), Start: q.GetStart(), End: q.GetEnd(),
	})
}

// Waits returns the waiting requests of a session, in the order of their commands. Interrupted requests do
// not wait.
func (t *Table) Waits(session ids.Session) (waits []*storepb.AwaitLock) {
	for _, w := range t.requestsOfSession(session) {
		if w.interrupted == 0 {
			waits = append(waits, w.await())
		}
	}
	return waits
}

// Interrupt records a signal to a waiting caller. It returns WAITING, and the request keeps its place for a
// moment. A request that became a lock stays a lock; then the result is that of Await.
func (t *Table) Interrupt(session ids.Session, op *storepb.InterruptLock) storepb.Code {
	seq := ids.Sequence(op.GetSeq())
	w, waiting := t.request(session, seq)
	if !waiting {
		return t.whetherHeld(session, seq, &storepb.TakeLock{
			Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(), Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
		})
	}
	t.deleteWaiter(w)
	changed := *w
	changed.interrupted = t.now
	t.putWaiter(&changed)
	t.serve() // requests behind it may be free
	return storepb.Code_WAITING
}

// whetherHeld returns OK if an owner has the range of one of its commands, else NOT_FOUND. Another command
// may have granted it since: threads of a process may all request the same.
func (t *Table) whetherHeld(session ids.Session, seq ids.Sequence, op *storepb.TakeLock) storepb.Code {
	want, valid := Want(session, seq, budget.User{}, op)
	if !valid {
		return storepb.Code_INVALID
	}
	if !want.unlock {
		if t.holds(&want.lock) {
			return storepb.Code_OK
		}
		return storepb.Code_NOT_FOUND
	}
	for _, own := range t.ownedBy(&want.lock) {
		if own.seq == seq {
			return storepb.Code_OK
		}
	}
	return storepb.Code_NOT_FOUND
}
