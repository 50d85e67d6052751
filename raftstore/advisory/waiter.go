package advisory

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// waiter is a request for a lock in the queue of its file. It is never modified once it is in a tree.
//
// Who came first gets the lock first: a request waits for locks that exclude it, and for earlier requests
// that do, so that a stream of readers does not keep a writer out.
type waiter struct {
	lock
	position    ids.Index // index of the command that first asked
	byProcess   bool
	interrupted int64 // since when nobody waits; 0: somebody does
}

// lessWaiter orders by file and then by who came first. Two requests of one position are of a call that was
// made again, whose first one is gone.
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

// lessByOwner orders by session, owner, file and then by arrival.
func lessByOwner(a, b *waiter) bool {
	switch {
	case a.session != b.session:
		return a.session < b.session
	case a.owner != b.owner:
		return a.owner < b.owner
	}
	return lessWaiter(a, b)
}

// lessRange orders by file, type and range.
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

// lessByRange orders by file, type, range and then by arrival.
func lessByRange(a, b *waiter) bool {
	return lessRange(a, b) || !lessRange(b, a) && a.position < b.position
}

// lessResumable orders by session, owner, file, type, range and then by arrival.
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

// await returns the question for the state of a request.
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
