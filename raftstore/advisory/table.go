// Package advisory is the table of flock(2) and fcntl(2) locks and of the queues of those who wait for them.
//
// Locks belong to owners, which are numbers within a session. A request that must wait stays in the queue of its file and becomes a
// lock by itself, with the command that makes it possible. It waits for earlier requests too that exclude it, so nobody starves; one
// that was interrupted keeps its place for a moment but gets nothing. Locks that their owners have lost may stay for a while, so
// that nobody else gets them while programs may still rely on them.
//
// A table knows neither files nor sessions but by their numbers, and no clock: index and time come in with each command ([Table.Begin]).
// The same calls give the same table on every node.
package advisory

import (
	"math"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// InterruptPatience is how long a request keeps its place for a caller that was interrupted: a signal's
// handler runs, and the call is made again.
const InterruptPatience = 2 * time.Second

// Request names a request for a lock: a session's command.
type Request struct {
	Session ids.Session
	Seq     ids.Sequence
}

// Table is the locks and requests of all files. It is not safe for concurrent use.
type Table struct {
	index   ids.Index
	now     int64
	ended   []Request   // see Ended
	changed []ids.Inode // see Changed

	held        *digest.Tree[*lock]    // by file and owner
	delayed     *btree.BTreeG[*lock]   // those that their owners have lost, by when they go
	waiters     *digest.Tree[*waiter]  // by file, in the order in which they are served
	requests    *btree.BTreeG[*waiter] // by session, seq
	interrupted *btree.BTreeG[*waiter] // by since when
	counts      counts
}

// New makes an empty table, whose locks and requests are in a digest.
func New(d *digest.Digest) *Table {
	options := btree.Options{NoLocks: true}
	return &Table{
		held:        digest.NewTree(d, lessLock, nil),
		delayed:     btree.NewBTreeGOptions(lessDelayed, options),
		waiters:     digest.NewTree(d, lessWaiter, nil),
		requests:    btree.NewBTreeGOptions(lessRequest, options),
		interrupted: btree.NewBTreeGOptions(lessInterrupted, options),
	}
}

// Begin has what follows be done by the command with that index, at that time (nanoseconds since the Unix epoch).
func (t *Table) Begin(index ids.Index, now int64) {
	t.index, t.now, t.ended, t.changed = index, now, nil, nil
}

// Ended answers the requests that became locks since Begin, or changed otherwise.
func (t *Table) Ended() []Request { return t.ended }

// Changed returns the files that got or lost locks or requests since Begin. A file may come several times.
func (t *Table) Changed() []ids.Inode { return t.changed }

// HeldBy reports whether a process has a lock of a file: one of a session, by its number in the pid namespace of the mount.
func (t *Table) HeldBy(ino ids.Inode, session ids.Session, pid uint32) (held bool) {
	for _, kind := range kinds {
		t.eachHeld(ino, kind, func(a *lock) bool {
			held = held || a.session == session && a.pid == pid && a.until == 0
			return !held
		})
	}
	return held
}

// Frozen is a copy in constant time, for Len, Each and Tables only.
func (t *Table) Frozen() *Table {
	return &Table{held: t.held.Copy(), waiters: t.waiters.Copy()} // the others are restored from these
}

// Tables are the tables of what is in the digest.
func (t *Table) Tables() []digest.Table { return []digest.Table{t.held, t.waiters} }

// Len is the number of locks and requests.
func (t *Table) Len() int { return t.held.Len() + t.waiters.Len() }

// Counts are how many locks there are and how many requests that wait for one.
func (t *Table) Counts() (held, waiting int) { return t.held.Len(), t.waiters.Len() }

// Locked tells whether somebody has a lock of a file, or waits for one.
func (t *Table) Locked(ino ids.Inode) bool { return t.LockedSince(ino, math.MinInt64) }

// LockedSince is Locked for what somebody got or asked for at a time or later.
func (t *Table) LockedSince(ino ids.Inode, at int64) (locked bool) {
	since := func(a *lock) bool {
		locked = locked || a.since >= at
		return !locked
	}
	for _, kind := range kinds {
		t.eachHeld(ino, kind, since)
		t.queue(ino, kind, func(w *waiter) bool { return since(&w.lock) })
	}
	return locked
}

// NextDue is the time from which on Expire changes something; math.MaxInt64 if nothing is under way.
func (t *Table) NextDue() int64 {
	next := int64(math.MaxInt64)
	if a, found := t.delayed.Min(); found {
		next = a.until
	}
	if w, found := t.interrupted.Min(); found {
		next = min(next, w.interrupted+int64(InterruptPatience))
	}
	return next
}

func (t *Table) change(ino ids.Inode) {
	if n := len(t.changed); n == 0 || t.changed[n-1] != ino {
		t.changed = append(t.changed, ino)
	}
}

func (t *Table) putLock(a *lock) {
	t.change(a.ino)
	if old, replaced := t.held.Set(a); replaced {
		t.counts.add(old, -1)
	}
	t.counts.add(a, +1)
	if a.until != 0 {
		t.delayed.Set(a)
	}
}

func (t *Table) deleteLock(a *lock) {
	t.change(a.ino)
	if old, found := t.held.Delete(a); found {
		t.counts.add(old, -1)
	}
	t.delayed.Delete(a)
}

func (t *Table) putWaiter(w *waiter) {
	t.change(w.ino)
	t.waiters.Set(w)
	t.requests.Set(w)
	t.counts.add(&w.lock, +1)
	if w.interrupted != 0 {
		t.interrupted.Set(w)
	}
}

func (t *Table) deleteWaiter(w *waiter) {
	t.change(w.ino)
	t.waiters.Delete(w)
	t.requests.Delete(w)
	t.counts.add(&w.lock, -1)
	t.interrupted.Delete(w)
	t.ended = append(t.ended, Request{w.session, w.seq})
}

// Others counts those who rely on the locks of a file besides a session that is about to remove it: locks of other sessions, and requests
// that wait, of whichever session.
func (t *Table) Others(ino ids.Inode, remover ids.Session) (held, waiting int) {
	for _, kind := range kinds {
		t.eachHeld(ino, kind, func(a *lock) bool {
			if a.session != remover {
				held++
			}
			return true
		})
		t.queue(ino, kind, func(w *waiter) bool {
			if w.interrupted == 0 {
				waiting++
			}
			return true
		})
	}
	return held, waiting
}

// queue visits the requests of a file in order.
func (t *Table) queue(ino ids.Inode, kind storepb.LockKind, visit func(*waiter) bool) {
	t.waiters.Ascend(&waiter{lock: lock{ino: ino, kind: kind}}, func(w *waiter) bool {
		return w.ino == ino && w.kind == kind && visit(w)
	})
}

func (t *Table) eachHeld(ino ids.Inode, kind storepb.LockKind, visit func(*lock) bool) {
	t.held.Ascend(&lock{ino: ino, kind: kind}, func(a *lock) bool {
		return a.ino == ino && a.kind == kind && visit(a)
	})
}
