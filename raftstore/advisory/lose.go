package advisory

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Drop is a close(2): owners lose their locks and requests of a file. The locks stay reserved for the delay
// (nanoseconds).
func (t *Table) Drop(session ids.Session, op *storepb.DropLocks, delay int64) {
	ino := ids.Inode(op.GetIno())
	for _, owner := range op.GetOwners() {
		gone := &lock{ino: ino, kind: op.GetKind(), session: session, owner: ids.Owner(owner), end: lastByte}
		for _, own := range t.ownedBy(gone) {
			t.takeFrom(own, delay)
		}
		for _, request := range t.requestsOf(gone) {
			t.deleteWaiter(request)
		}
	}
	t.serve()
}

// DropAll ends the locks and requests of a session. The locks stay reserved for the delay (nanoseconds).
func (t *Table) DropAll(session ids.Session, delay int64) {
	if !t.Has(session) {
		return
	}
	for _, request := range t.requestsOfSession(session) {
		t.deleteWaiter(request)
	}
	var own []*lock
	t.bySession.Ascend(&lock{session: session}, func(a *lock) bool {
		if a.session == session && a.until == 0 {
			own = append(own, a)
		}
		return a.session == session
	})
	for _, a := range own {
		t.takeFrom(a, delay)
	}
	t.serve()
}

func (t *Table) takeFrom(a *lock, delay int64) {
	t.deleteLock(a)
	if delay > 0 {
		stays := *a
		stays.until = t.now + delay
		t.putLock(&stays)
	}
}

// Cancel removes the request of a session's command, if it still waits.
func (t *Table) Cancel(session ids.Session, seq ids.Sequence) {
	if request, waiting := t.request(session, seq); waiting {
		t.deleteWaiter(request)
		t.serve()
	}
}

// Expire removes lost locks after their delay, and interrupted requests that were not repeated in time.
func (t *Table) Expire() {
	for {
		a, found := t.delayed.Min()
		if !found || a.until > t.now {
			break
		}
		t.deleteLock(a)
	}
	for {
		w, found := t.interrupted.Min()
		if !found || t.now-w.interrupted < int64(InterruptPatience) {
			break
		}
		t.deleteWaiter(w)
	}
	t.serve()
}
