package advisory

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// naive is a table without any index: a list of locks and a list of requests, which every command goes through as often as it needs. It is
// what [Table] has to agree with.
type naive struct {
	index  ids.Index
	now    int64
	held   []lock
	queue  []*waiter // by position
	served int
	passed int // see Table
}

func (n *naive) heldAgainst(want *lock) bool {
	return slices.ContainsFunc(n.held, func(a lock) bool { return a.excludes(want) })
}

// inFront lists the earlier requests for which a request has to wait. It leaves out each request that waits, directly or indirectly, for a
// lock of the same owner. If the owner has locks and too many requests are earlier, it leaves out all.
func (n *naive) inFront(w *waiter) (front []*waiter) {
	var stuck []*lock
	before, holds := 0, false
	for _, a := range n.held {
		if a.sameOwner(&w.lock) {
			stuck = append(stuck, &a)
			holds = holds || fileOf(&a) == fileOf(&w.lock)
		}
	}
	for _, other := range n.queue {
		if fileOf(&other.lock) == fileOf(&w.lock) && other.position < w.position {
			before++
		}
	}
	if holds && before > n.passed {
		return nil
	}
	for _, earlier := range n.queue {
		if earlier.position >= w.position || earlier.interrupted != 0 || earlier.sameOwner(&w.lock) {
			continue
		}
		if slices.ContainsFunc(stuck, func(a *lock) bool { return a.excludes(&earlier.lock) }) {
			stuck = append(stuck, &earlier.lock)
		} else if earlier.excludes(&w.lock) {
			front = append(front, earlier)
		}
	}
	return front
}

// serve grants the first request that can be, again and again.
func (n *naive) serve() {
	for i := 0; i < len(n.queue); i++ {
		w := n.queue[i]
		if w.interrupted == 0 && !n.heldAgainst(&w.lock) && len(n.inFront(w)) == 0 {
			n.queue = slices.Delete(n.queue, i, i+1)
			granted := w.lock
			granted.since = n.now
			n.set(&granted, true)
			n.served++
			i = -1
		}
	}
}

func (n *naive) set(want *lock, held bool) {
	var rest []lock
	for _, a := range n.held {
		if !a.sameOwner(want) {
			rest = append(rest, a)
			continue
		}
		for _, piece := range a.without(want) {
			rest = append(rest, *piece)
		}
	}
	n.held = rest
	if !held {
		return
	}
	whole := *want
	for joined := true; joined; {
		joined = false
		for i, a := range n.held {
			if a.sameOwner(&whole) && fileOf(&a) == fileOf(&whole) && a.exclusive == whole.exclusive &&
				(a.end+1 == whole.start || whole.end+1 == a.start) {
				whole.start, whole.end = min(whole.start, a.start), max(whole.end, a.end)
				n.held = slices.Delete(n.held, i, i+1)
				joined = true
				break
			}
		}
	}
	n.held = append(n.held, whole)
}

func (n *naive) take(want *Wanted) storepb.Code {
	if want.unlock {
		n.set(&want.lock, false)
		n.serve()
		return storepb.Code_OK
	}
	asked := want.lock
	asked.since = n.now
	w := &waiter{lock: asked, position: n.index, byProcess: want.byProcess}
	again := slices.IndexFunc(n.queue, func(other *waiter) bool {
		return other.sameOwner(&asked) && fileOf(&other.lock) == fileOf(&asked) && other.interrupted != 0 &&
			other.start == asked.start && other.end == asked.end && other.exclusive == asked.exclusive
	})
	convert := slices.IndexFunc(n.held, func(a lock) bool {
		return asked.kind == storepb.LockKind_FLOCK && a.sameOwner(&asked) && fileOf(&a) == fileOf(&asked) && a.exclusive != asked.exclusive
	})
	if convert >= 0 {
		n.held = slices.Delete(n.held, convert, convert+1)
		n.serve()
		again = slices.IndexFunc(n.queue, func(other *waiter) bool {
			return other.sameOwner(&asked) && fileOf(&other.lock) == fileOf(&asked) && other.interrupted != 0 &&
				other.exclusive == asked.exclusive
		})
	}
	if again >= 0 {
		w.position, w.since = n.queue[again].position, n.queue[again].since
		n.queue = slices.Delete(n.queue, again, again+1)
	}
	inTheWay := n.heldAgainst(&asked)
	switch {
	case !inTheWay && (!want.wait || len(n.inFront(w)) == 0):
		n.set(&asked, true)
		n.serve()
		return storepb.Code_OK
	case !want.wait:
		return storepb.Code_WOULD_BLOCK
	}
	n.queue = append(n.queue, w)
	slices.SortFunc(n.queue, func(a, b *waiter) int { return int(a.position) - int(b.position) })
	code := storepb.Code_WAITING
	if n.isDeadlock(w) {
		n.remove(func(other *waiter) bool { return other == w })
		code = storepb.Code_DEADLOCK
	}
	n.serve()
	return code
}

func (n *naive) only(owner lockOwner) (only *waiter) {
	for _, w := range n.queue {
		if ownerOf(&w.lock) != owner || w.kind != storepb.LockKind_RECORD || w.interrupted != 0 {
			continue
		}
		if only != nil || !w.byProcess {
			return nil
		}
		only = w
	}
	return only
}

// isDeadlock looks for a way from a request back to its owner, all along processes with one request.
func (n *naive) isDeadlock(w *waiter) bool {
	self := ownerOf(&w.lock)
	if w.kind != storepb.LockKind_RECORD || n.only(self) != w {
		return false
	}
	seen := map[lockOwner]bool{}
	var reaches func(from *waiter) bool
	reaches = func(from *waiter) bool {
		var to []lockOwner
		for _, a := range n.held {
			if a.until == 0 && a.excludes(&from.lock) {
				to = append(to, ownerOf(&a))
			}
		}
		for _, earlier := range n.inFront(from) {
			to = append(to, ownerOf(&earlier.lock))
		}
		for _, owner := range to {
			if owner == self {
				return true
			}
			if seen[owner] {
				continue
			}
			seen[owner] = true
			if next := n.only(owner); next != nil && reaches(next) {
				return true
			}
		}
		return false
	}
	return reaches(w)
}

func (n *naive) remove(gone func(*waiter) bool) { n.queue = slices.DeleteFunc(n.queue, gone) }

func (n *naive) lose(is func(*lock) bool, delay int64) {
	var rest []lock
	for _, a := range n.held {
		switch {
		case a.until != 0 || !is(&a):
			rest = append(rest, a)
		case delay > 0:
			a.until = n.now + delay
			rest = append(rest, a)
		}
	}
	n.held = rest
	n.remove(func(w *waiter) bool { return is(&w.lock) })
	n.serve()
}

func (n *naive) interrupt(session ids.Session, seq ids.Sequence) {
	for i, w := range n.queue {
		if w.session == session && w.seq == seq {
			changed := *w
			changed.interrupted = n.now
			n.queue[i] = &changed
		}
	}
	n.serve()
}

func (n *naive) expire() {
	n.held = slices.DeleteFunc(n.held, func(a lock) bool { return a.until != 0 && a.until <= n.now })
	n.remove(func(w *waiter) bool { return w.interrupted != 0 && n.now-w.interrupted >= int64(InterruptPatience) })
	n.serve()
}
