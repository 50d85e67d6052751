package namespace

import "lockfs/raftstore/storepb"

// testLock is F_GETLK.
func (ns *Namespace) testLock(q *storepb.TestLock) *storepb.Result {
	want, valid := advisoryOf(q.GetSession(), 0, q.GetLock())
	if !valid {
		return fail(storepb.Code_INVALID)
	}
	result := ok()
	if inTheWay := ns.heldAgainst(&want); inTheWay != nil {
		result.AdvisoryLocks = ns.advisoryMessages([]*advisory{inTheWay})
	}
	return result
}

func (ns *Namespace) listAdvisories(q *storepb.ListAdvisoryLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return nobody()
	}
	view := ns.viewOf(q.GetViewer())
	return &storepb.Result{AdvisoryLocks: ns.advisoriesOf(q.GetIno(), advisoryPage, func(of uint64) bool {
		return (q.GetIno() != 0 || !ns.isUnlisted(of)) && view.advisories(of)
	})}
}

func anyFile(uint64) bool { return true }

// advisoriesOf answers the locks and requests of a file, or of all (0), as far as they are wanted, and so many at most.
func (ns *Namespace) advisoriesOf(ino uint64, most int, wanted func(ino uint64) bool) (messages []*storepb.AdvisoryLock) {
	ns.advisories.Ascend(&advisory{ino: ino}, func(a *advisory) bool {
		if ino != 0 && a.ino != ino {
			return false
		}
		if wanted(a.ino) {
			messages = append(messages, ns.advisoryMessage(a))
		}
		return len(messages) < most
	})
	ns.waiters.Ascend(&waiter{advisory: advisory{ino: ino}}, func(w *waiter) bool {
		if ino != 0 && w.ino != ino || len(messages) >= most {
			return false
		}
		if wanted(w.ino) {
			messages = append(messages, ns.waiterMessage(w))
		}
		return true
	})
	return messages
}

func (ns *Namespace) isUnlisted(ino uint64) bool {
	in, found := ns.inodes.Get(ino)
	return found && in.unlisted
}

func (ns *Namespace) advisoryMessages(locks []*advisory) []*storepb.AdvisoryLock {
	var messages []*storepb.AdvisoryLock
	for _, a := range locks {
		messages = append(messages, ns.advisoryMessage(a))
	}
	return messages
}

// advisoryMessage tells the host too, which is the session's.
func (ns *Namespace) advisoryMessage(a *advisory) *storepb.AdvisoryLock {
	message := a.message()
	if s, found := ns.sessions.Get(a.session); found {
		message.Host = s.host
	}
	return message
}

func (a *advisory) message() *storepb.AdvisoryLock {
	message := &storepb.AdvisoryLock{
		Ino: a.ino, Kind: a.kind, Type: storepb.LockType_SHARED, Session: a.session, Owner: a.owner,
		Start: a.start, End: a.end, Pid: a.pid, Since: a.since, Seq: a.seq, Until: a.until,
	}
	if a.exclusive {
		message.Type = storepb.LockType_EXCLUSIVE
	}
	return message
}

func (ns *Namespace) waiterMessage(w *waiter) *storepb.AdvisoryLock {
	message := ns.advisoryMessage(&w.advisory)
	message.Position, message.ByProcess, message.Interrupted = w.position, w.byProcess, w.interrupted
	return message
}

func advisoryFrom(m *storepb.AdvisoryLock) *advisory {
	return &advisory{
		ino: m.GetIno(), kind: m.GetKind(), session: m.GetSession(), owner: m.GetOwner(), start: m.GetStart(), end: m.GetEnd(),
		exclusive: m.GetType() == storepb.LockType_EXCLUSIVE, pid: m.GetPid(), since: m.GetSince(), seq: m.GetSeq(),
		until: m.GetUntil(),
	}
}

// restoreAdvisory puts a lock or a request of a snapshot in its place.
func (ns *Namespace) restoreAdvisory(m *storepb.AdvisoryLock) {
	if m.GetPosition() == 0 {
		ns.putAdvisory(advisoryFrom(m))
		return
	}
	ns.putWaiter(&waiter{
		advisory: *advisoryFrom(m), position: m.GetPosition(), byProcess: m.GetByProcess(), interrupted: m.GetInterrupted(),
	})
}
