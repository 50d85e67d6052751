package namespace

import (
	"lockfs/raftstore/storepb"
)

// expireLocks marks and removes due locks. Every command runs it.
func (k *Namespace) expireLocks() {
	for range expiryBatch {
		e, found := k.tree.byDue.Min()
		if !found || e.due >= k.time {
			return
		}
		in, found := k.tree.inode(e.ino)
		if !found {
			return
		}
		if e.stale != nil {
			k.removeStale(e, in)
		} else if why := k.staleNow(e, k.govern(e, in)); why != nil {
			k.markStale(e, why)
		}
	}
}

// markStale marks a lock as stale, and removes it if its format or rule says so. It does nothing if the name
// is gone, has another inode or is already marked.
func (k *Namespace) markStale(e *entry, why *staleness) {
	now, found := k.tree.byName.Get(e)
	if !found || now.ino != e.ino || now.stale != nil {
		return
	}
	in, found := k.tree.inode(now.ino)
	if !found {
		return
	}
	marked := *k.announceBefore(now, in)
	marked.stale = why
	k.judgeEntry(&marked, in)
	k.tree.putEntry(&marked)
	if !in.unlisted {
		event := k.lockEvent(eventStale, &marked, in, nil)
		event.Reason = why.reason
		k.emit(event)
	}
	if marked.due != 0 && marked.due < k.time {
		k.removeStale(&marked, in)
	}
}

func (k *Namespace) removeStale(e *entry, in *inode) {
	if in.isDir() {
		for _, inside := range k.tree.entriesOf(in.ino) {
			if file, found := k.tree.inode(inside.ino); found {
				k.removeFor(inside, file, e.stale.reason)
			}
		}
		in, _ = k.tree.inode(in.ino) // the removals changed its times
	}
	k.removeFor(e, in, e.stale.reason)
}

func (k *Namespace) removeFor(e *entry, in *inode, reason string) {
	if !in.unlisted {
		event := k.lockEvent(eventRemoved, k.announceBefore(e, in), in, nil)
		event.Reason = reason
		k.emit(event)
	}
	k.removeEntry(0, e, in)
}

// tick expires host timeouts; the rest happens with every command.
func (k *Namespace) tick() *storepb.Result {
	type lost struct {
		e   *entry
		why *staleness
	}
	var found []lost
	k.eachTimedOut(k.time, func(e *entry, why *staleness) bool {
		found = append(found, lost{e, why})
		return len(found) < expiryBatch
	})
	for _, l := range found {
		k.markStale(l.e, l.why)
	}
	return ok()
}
