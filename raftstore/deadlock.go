package raftstore

import "lockfs/raftstore/storepb"

// isDeadlock tells whether a request would wait for its own owner, through others that wait. Only requests
// of processes count, all the way: an open file description that waits in one thread may be unlocked by
// another, and one that was interrupted does not wait.
func (ns *Namespace) isDeadlock(request *waiter) bool {
	if !request.byProcess || request.kind != storepb.LockKind_RECORD {
		return false
	}
	type owner struct{ session, owner uint64 }
	seen := make(map[owner]bool)
	next := ns.waitsFor(request)
	for len(next) > 0 {
		a := next[0]
		next = next[1:]
		if a.session == request.session && a.owner == request.owner {
			return true
		}
		if id := (owner{a.session, a.owner}); !seen[id] {
			seen[id] = true
			for _, w := range ns.waitingProcess(a) {
				next = append(next, ns.waitsFor(w)...)
			}
		}
	}
	return false
}

// waitsFor lists the locks and the earlier requests that a request has to wait for.
func (ns *Namespace) waitsFor(w *waiter) []*advisory {
	var others []*advisory
	ns.advisories.Ascend(&advisory{ino: w.ino, kind: w.kind}, func(a *advisory) bool {
		if a.ino != w.ino || a.kind != w.kind {
			return false
		}
		if a.excludes(&w.advisory) && a.until == 0 {
			others = append(others, a)
		}
		return true
	})
	ns.queue(w.ino, w.kind, func(earlier *waiter) bool {
		if earlier.position >= w.position {
			return false
		}
		if earlier.interrupted == 0 && earlier.excludes(&w.advisory) && !ns.ownsAgainst(w, earlier) {
			others = append(others, &earlier.advisory)
		}
		return true
	})
	return others
}

// waitingProcess lists the requests of an owner that is surely a process and surely waits.
func (ns *Namespace) waitingProcess(owner *advisory) []*waiter {
	var own []*waiter
	ns.requests.Ascend(&waiter{advisory: advisory{session: owner.session}}, func(w *waiter) bool {
		if w.session != owner.session {
			return false
		}
		if w.owner == owner.owner && w.kind == storepb.LockKind_RECORD && w.byProcess && w.interrupted == 0 {
			own = append(own, w)
		}
		return true
	})
	return own
}
