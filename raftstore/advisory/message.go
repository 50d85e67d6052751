package advisory

import (
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// List returns at most this many wanted locks and requests of a file, or of all files (0). Locks come first,
// then requests in the order of service. Hosts, which a table does not know, are empty.
func (t *Table) List(ino ids.Inode, most int, wanted func(ids.Inode) bool) (messages []*storepb.AdvisoryLock) {
	t.held.Ascend(&lock{ino: ino}, func(a *lock) bool {
		if ino != 0 && a.ino != ino {
			return false
		}
		if wanted(a.ino) {
			messages = append(messages, a.message())
		}
		return len(messages) < most
	})
	t.waiters.Ascend(&waiter{lock: lock{ino: ino}}, func(w *waiter) bool {
		if ino != 0 && w.ino != ino || len(messages) >= most {
			return false
		}
		if wanted(w.ino) {
			messages = append(messages, w.message())
		}
		return true
	})
	return messages
}

// Each visits all locks and then all requests, in an order that depends on the table alone, until visit
// returns false.
func (t *Table) Each(visit func(*storepb.AdvisoryLock) bool) {
	going := true
	t.held.Scan(func(a *lock) bool {
		going = visit(a.message())
		return going
	})
	if going {
		t.waiters.Scan(func(w *waiter) bool { return visit(w.message()) })
	}
}

// Restore adds a message of Each. host is that of the session.
func (t *Table) Restore(m *storepb.AdvisoryLock, host string) {
	if m.GetPosition() == 0 {
		t.putLock(lockFrom(m, host))
		return
	}
	w := &waiter{lock: *lockFrom(m, host), position: ids.Index(m.GetPosition()), byProcess: m.GetByProcess(), interrupted: m.GetInterrupted()}
	t.putWaiter(w)
	if w.interrupted != 0 {
		return
	}
	if p := t.reasonToWait(w); p != nil { // the locks in its way were visited before it
		t.service.park(p)
	}
}

// Record implements digest.Value.
func (a *lock) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_AdvisoryLock{AdvisoryLock: a.message()}}
}

// Record implements digest.Value.
func (w *waiter) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_AdvisoryLock{AdvisoryLock: w.message()}}
}

func (a *lock) message() *storepb.AdvisoryLock {
	message := &storepb.AdvisoryLock{
		Ino: uint64(a.ino), Kind: a.kind, Type: storepb.LockType_SHARED, Session: uint64(a.session), Owner: uint64(a.owner),
		Start: a.start, End: a.end, Pid: a.pid, Since: a.since, Seq: uint64(a.seq), Until: a.until, Uid: a.user.UID,
	}
	if a.exclusive {
		message.Type = storepb.LockType_EXCLUSIVE
	}
	return message
}

func (w *waiter) message() *storepb.AdvisoryLock {
	message := w.lock.message()
	message.Position, message.ByProcess, message.Interrupted = uint64(w.position), w.byProcess, w.interrupted
	return message
}

func lockFrom(m *storepb.AdvisoryLock, host string) *lock {
	return &lock{
		ino: ids.Inode(m.GetIno()), kind: m.GetKind(), session: ids.Session(m.GetSession()), owner: ids.Owner(m.GetOwner()),
		start: m.GetStart(), end: m.GetEnd(), exclusive: m.GetType() == storepb.LockType_EXCLUSIVE, pid: m.GetPid(),
		since: m.GetSince(), seq: ids.Sequence(m.GetSeq()), until: m.GetUntil(),
		user: budget.User{Host: host, UID: m.GetUid()},
	}
}
