package advisory

import (
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Await tells what has become of a request: WAITING, OK if its owner has what it asked for, else NOT_FOUND. INVALID: nobody could ask
// for that.
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

// Waits returns the requests of a session that wait, in the order of their commands. An interrupted request does not.
func (t *Table) Waits(session ids.Session) (waits []*storepb.AwaitLock) {
	for _, w := range t.requestsOfSession(session) {
		if w.interrupted == 0 {
			waits = append(waits, w.await())
		}
	}
	return waits
}

// Interrupt is a signal for somebody who waits. It answers WAITING, and then the request keeps its place for a moment. One that has
// become a lock stays one: then the answer is that of Await.
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
	t.serve() // those who waited for it need not now
	return storepb.Code_WAITING
}

// whetherHeld answers OK if an owner has what a command of it asked for, else NOT_FOUND. It may have got it
// by another command since: its threads may all ask for the same.
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
