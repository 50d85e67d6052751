package advisory

import (
	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// serveQueue makes locks of the requests that can be.
func (t *Table) serveQueue(ino ids.Inode, kind storepb.LockKind) {
	for t.serveInTurn(ino, kind) {
	}
}

// serveInTurn goes through the queue once. It answers true if it has to be done again from the start, because
// an owner got a lock in the place of another one: less may be in the way now.
func (t *Table) serveInTurn(ino ids.Inode, kind storepb.LockKind) (again bool) {
	var requests []*waiter
	t.queue(ino, kind, func(w *waiter) bool {
		if w.interrupted == 0 {
			requests = append(requests, w)
		}
		return true
	})
	if len(requests) == 0 {
		return false
	}
	held, waiting := new(standing), new(standing)
	t.eachHeld(ino, kind, func(a *lock) bool {
		held.add(a)
		return true
	})
	for _, w := range requests {
		first := waiting.against(&w.lock) == nil || fault.QueueJump
		if held.against(&w.lock) != nil || !first && t.queuedAgainst(w) != nil {
			waiting.add(&w.lock)
			continue
		}
		had := t.ownedBy(&w.lock)
		held.add(t.grant(w))
		if len(had) > 0 {
			return true
		}
	}
	return false
}

func (t *Table) grant(w *waiter) *lock {
	t.deleteWaiter(w)
	granted := w.lock
	granted.since = t.now
	t.setRange(&granted, true)
	return &granted
}

// files are those of which something was released.
type files struct {
	seen map[file]bool
	list []file // in the order of the releases, which is the same on all nodes
}

type file struct {
	ino  ids.Inode
	kind storepb.LockKind
}

func (f *files) add(a *lock) {
	released := file{a.ino, a.kind}
	if f.seen[released] {
		return
	}
	if f.seen == nil {
		f.seen = make(map[file]bool)
	}
	f.seen[released] = true
	f.list = append(f.list, released)
}

func (t *Table) serveQueues(released *files) {
	for _, f := range released.list {
		t.serveQueue(f.ino, f.kind)
	}
}
