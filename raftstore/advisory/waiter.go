package advisory

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// waiter is a request in the queue of its file. It is never modified once it is in a tree.
//
// The first request gets the lock first: a request waits for conflicting locks and for conflicting earlier
// requests. So a stream of readers does not starve a writer.
type waiter struct {
	lock
	position    ids.Index // index of the first requesting command
	byProcess   bool
	interrupted int64 // since when no caller waits; 0: one does
}

// lessWaiter orders by file and then by arrival. A repeated call takes over the position of its first
// request, which is gone.
func lessWaiter(a, b *waiter) bool {
	switch {
	case a.ino != b.ino:
		return a.ino < b.ino
	case a.kind != b.kind:
		return a.kind < b.kind
	}
	return a.position < b.position
}

func lessRequest(a, b *waiter) bool {
	if a.session != b.session {
		return a.session < b.session
	}
	return a.seq < b.seq
}

func lessByOwner(a, b *waiter) bool {
	switch {
	case a.session != b.session:
		return a.session < b.session
	case a.owner != b.owner:
		return a.owner < b.owner
	}
	return lessWaiter(a, b)
}

func lessRange(a, b *waiter) bool {
	switch {
	case fileOf(&a.lock) != fileOf(&b.lock):
		return lessWaiter(a, b)
	case a.exclusive != b.exclusive:
		return b.exclusive
	case a.start != b.start:
		return a.start < b.start
	}
	return a.end < b.end
}

func lessByRange(a, b *waiter) bool {
	return lessRange(a, b) || !lessRange(b, a) && a.position < b.position
}

func lessResumable(a, b *waiter) bool {
	switch {
	case a.session != b.session:
		return a.session < b.session
	case a.owner != b.owner:
		return a.owner < b.owner
	}
	return lessByRange(a, b)
}

func lessInterrupted(a, b *waiter) bool {
	if a.interrupted != b.interrupted {
		return a.interrupted < b.interrupted
	}
	return lessRequest(a, b)
}

// await returns the query for the state of a request.
func (w *waiter) await() *storepb.AwaitLock {
	q := &storepb.AwaitLock{
		Session: uint64(w.session), Seq: uint64(w.seq), Ino: uint64(w.ino), Kind: w.kind, Owner: uint64(w.owner),
		Type: storepb.LockType_SHARED, Start: w.start, End: w.end,
	}
	if w.exclusive {
		q.Type = storepb.LockType_EXCLUSIVE
	}
	return q
}
