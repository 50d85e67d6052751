package namespace

import (
	"lockfs/raftstore/storepb"
)

// expireLocks marks and removes due locks. Every command runs it.
func (ns *Namespace) expireLocks() {
	for range expiryBatch {
		e, found := ns.tree.byDue.Min()
		if !found || e.due >= ns.time {
			return
		}
		in, found := ns.tree.inode(e.ino)
		if !found {
			return
		}
		if e.stale != nil {
			ns.removeStale(e, in)
		} else if why := ns.staleNow(e, ns.effective(e, in)); why != nil {
			ns.markStale(e, why)
		}
	}
}

// markStale marks a lock as stale, and removes it if its format or rule says so. It does nothing if the name
// is gone, has another inode or is already marked.
func (ns *Namespace) markStale(e *entry, why *staleness) {
	now, found := ns.tree.byName.Get(e)
	if !found || now.ino != e.ino || now.stale != nil {
		return
	}
	in, found := ns.tree.inode(now.ino)
	if !found {
		return
	}
	marked := *ns.emitPending(now, in)
	marked.stale = why
	ns.evaluate(&marked, in)
	ns.tree.putEntry(&marked)
	if !in.unlisted {
		event := ns.lockEvent(eventStale, &marked, in, nil)
		event.Reason = why.reason
		ns.emit(event)
	}
	if marked.due != 0 && marked.due < ns.time {
		ns.removeStale(&marked, in)
	}
}

func (ns *Namespace) removeStale(e *entry, in *inode) {
	if in.isDir() {
		for _, inside := range ns.tree.entriesOf(in.ino) {
			if file, found := ns.tree.inode(inside.ino); found {
				ns.removeFor(inside, file, e.stale.reason)
			}
		}
		in, _ = ns.tree.inode(in.ino) // the removals changed its times
	}
	ns.removeFor(e, in, e.stale.reason)
}

func (ns *Namespace) removeFor(e *entry, in *inode, reason string) {
	if !in.unlisted {
		event := ns.lockEvent(eventRemoved, ns.emitPending(e, in), in, nil)
		event.Reason = reason
		ns.emit(event)
	}
	ns.removeEntry(0, e, in)
}

// tick expires host timeouts; the rest happens with every command.
func (ns *Namespace) tick() *storepb.Result {
	type lost struct {
		e   *entry
		why *staleness
	}
	var found []lost
	ns.eachTimedOut(ns.time, func(e *entry, why *staleness) bool {
		found = append(found, lost{e, why})
		return len(found) < expiryBatch
	})
	for _, l := range found {
		ns.markStale(l.e, l.why)
	}
	return ok()
}
