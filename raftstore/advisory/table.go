// Package advisory is the table of flock(2) and fcntl(2) locks, and of the queues of waiting requests.
//
// Locks belong to owners, which are numbers within a session. A request that must wait stays in the queue of
// its file, and the command that frees the range makes it a lock. It also waits for conflicting earlier
// requests, so no request starves. An interrupted request keeps its place for a moment, but gets nothing.
// Lost locks may stay reserved for a while, since programs may still rely on them.
//
// A command takes logarithmic time in everything a user can pile up. Interval trees find the locks in the way
// of a request. A release visits only the requests that wait for its bytes, and of equal requests in one
// queue only the first (type service). An owner with locks passes earlier requests if they are many
// ([Table.passes]). Two costs stay proportional. A close gives up each lock of its owner. A release visits
// each different request for its bytes, also those with another reason to wait; a user has at most
// [MostRanges] different ones in a file.
//
// A table knows files and sessions by their numbers only, and no clock: each command brings index and time
// ([Table.Begin]). The same calls give the same table on every node.
package advisory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// InterruptPatience is how long a request keeps its place after a signal interrupted its caller: the signal
// handler runs, and the program repeats the call.
const InterruptPatience = 2 * time.Second

// Request identifies a request for a lock: a session's command.
type Request struct {
	Session ids.Session
	Seq     ids.Sequence
}

// Table holds the locks and requests of all files. It is not safe for concurrent use.
type Table struct {
	index   ids.Index
	now     int64
	ended   []*waiter   // see Ended
	changed []ids.Inode // see Changed

	held        *digest.Tree[*lock]    // by file and owner
	delayed     *btree.BTreeG[*lock]   // lost ones, by the end of their delay
	waiters     *digest.Tree[*waiter]  // by file, in the order of service
	requests    *btree.BTreeG[*waiter] // by session, seq
	interrupted *btree.BTreeG[*waiter] // by time of the interruption
	resumable   *btree.BTreeG[*waiter] // the same by owner, file, range and arrival
	counts      counts

	files     map[file]index         // never ranged over
	heldBy    map[holding]int        // number of locks of a process; never ranged over
	heldOf    map[sessionFile]int    // number of a session's locks of a file, with lost ones; never ranged over
	bySession *btree.BTreeG[*lock]   // by session, owner and file
	byOwner   *btree.BTreeG[*waiter] // requests by session, owner and file
	byRange   *btree.BTreeG[*waiter] // uninterrupted requests, by file, type, range and arrival
	service   service
	passed    int   // passedRequests; tests have less
	edge      *edge // nil: it is not known
}

// index holds the locks and the requests of a file, by their ranges.
type index struct{ held, queue *intervals }

// holding identifies the locks of a process on one inode.
type holding struct {
	ino     ids.Inode
	session ids.Session
	pid     uint32
}

type sessionFile struct {
	ino     ids.Inode
	session ids.Session
}

// New returns an empty table with its locks and requests in a digest.
func New(d *digest.Digest) *Table {
	options := btree.Options{NoLocks: true}
	return &Table{
		held:        digest.NewTree(d, lessLock, nil),
		delayed:     btree.NewBTreeGOptions(lessDelayed, options),
		waiters:     digest.NewTree(d, lessWaiter, nil),
		requests:    btree.NewBTreeGOptions(lessRequest, options),
		interrupted: btree.NewBTreeGOptions(lessInterrupted, options),
		resumable:   btree.NewBTreeGOptions(lessResumable, options),
		files:       make(map[file]index),
		heldBy:      make(map[holding]int),
		heldOf:      make(map[sessionFile]int),
		bySession:   btree.NewBTreeGOptions(lessBySession, options),
		byOwner:     btree.NewBTreeGOptions(lessByOwner, options),
		byRange:     btree.NewBTreeGOptions(lessByRange, options),
		service:     newService(),
		passed:      passedRequests,
	}
}

// Begin starts the command with this index and time (nanoseconds since the Unix epoch).
func (t *Table) Begin(index ids.Index, now int64) {
	t.index, t.now, t.ended, t.changed = index, now, nil, nil
}

// Ended returns the requests that became locks since Begin, or changed otherwise.
func (t *Table) Ended() (ended []Request) {
	for _, w := range t.ended {
		ended = append(ended, Request{w.session, w.seq})
	}
	return ended
}

// EndedWaits returns the locks of the requests of Ended.
func (t *Table) EndedWaits() (ended []*storepb.AwaitLock) {
	for _, w := range t.ended {
		ended = append(ended, w.await())
	}
	return ended
}

// Changed returns the files that got or lost locks or requests since Begin. A file may come several times.
func (t *Table) Changed() []ids.Inode { return t.changed }

// HeldBy reports whether a process of a session has a lock of a file. pid is the number in the pid namespace
// of the mount.
func (t *Table) HeldBy(ino ids.Inode, session ids.Session, pid uint32) bool {
	return t.heldBy[holding{ino, session, pid}] > 0
}

// Frozen returns a copy in constant time, for Len, Each and Tables only.
func (t *Table) Frozen() *Table {
	return &Table{held: t.held.Copy(), waiters: t.waiters.Copy()} // the others are restored from these
}

// Tables returns the tables in the digest.
func (t *Table) Tables() []digest.Table { return []digest.Table{t.held, t.waiters} }

// Len returns the number of locks and requests.
func (t *Table) Len() int { return t.held.Len() + t.waiters.Len() }

// Counts returns the numbers of locks and of waiting requests.
func (t *Table) Counts() (held, waiting int) { return t.held.Len(), t.waiters.Len() }

// Used returns the numbers of locks and requests of a user on a host, of all users there, and of the user in
// one file.
func (t *Table) Used(by budget.User, ino ids.Inode) (ofUser, ofHost, ofFile uint64) {
	return t.counts.users.Used(by), t.counts.hosts.Used(by.Host), t.counts.files.Used(FileUser{ino, by.UID})
}

// LargestUsers returns at most this many users, those with most locks and requests.
func (t *Table) LargestUsers(most int) []budget.Use[budget.User] {
	return t.counts.users.Largest(most, budget.User.Compare)
}

// LargestHosts returns at most this many hosts, those with most locks and requests.
func (t *Table) LargestHosts(most int) []budget.Use[string] {
	return t.counts.hosts.Largest(most, cmp.Compare[string])
}

// LargestInFiles returns at most this many users of a file, those with most locks and requests in it.
func (t *Table) LargestInFiles(most int) []budget.Use[FileUser] {
	return t.counts.files.Largest(most, FileUser.Compare)
}

// Has reports whether a session has locks or requests.
func (t *Table) Has(session ids.Session) bool { return t.counts.sessions.Used(session) > 0 }

// Locked reports whether a file has locks or waiting requests.
func (t *Table) Locked(ino ids.Inode) bool { return t.LockedSince(ino, math.MinInt64) }

// LockedSince reports whether a file has locks or requests that came at a time or later.
func (t *Table) LockedSince(ino ids.Inode, at int64) bool {
	return slices.ContainsFunc(kinds, func(kind storepb.LockKind) bool {
		in := t.files[file{ino, kind}]
		return in.held.isSince(at) || in.queue.isSince(at)
	})
}

// NextDue returns the time from which Expire changes something; math.MaxInt64: never.
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
	if same, found := t.held.Get(a); found {
		t.deleteLock(same)
	}
	t.held.Set(a)
	t.bySession.Set(a)
	t.countLock(a, +1)
	if a.until != 0 {
		t.delayed.Set(a)
	}
	in := t.files[fileOf(a)]
	in.held = in.held.put(interval{lock: a})
	t.files[fileOf(a)] = in
	t.ownerHasMore(a)
}

func (t *Table) deleteLock(a *lock) {
	t.change(a.ino)
	t.held.Delete(a)
	t.bySession.Delete(a)
	t.countLock(a, -1)
	t.delayed.Delete(a)
	in := t.files[fileOf(a)]
	in.held = in.held.remove(interval{lock: a})
	t.putIndex(fileOf(a), in)
	t.service.freed = append(t.service.freed, a)
}

func (t *Table) countLock(a *lock, by int) {
	t.counts.add(a, int64(by))
	add(t.heldOf, sessionFile{a.ino, a.session}, by)
	if a.until == 0 {
		add(t.heldBy, holding{a.ino, a.session, a.pid}, by)
	}
}

func (t *Table) putWaiter(w *waiter) {
	t.change(w.ino)
	t.moveEdge(w, +1)
	t.waiters.Set(w)
	t.requests.Set(w)
	t.byOwner.Set(w)
	t.counts.addRequest(&w.lock, +1)
	in := t.files[fileOf(&w.lock)]
	in.queue = in.queue.put(interval{&w.lock, w})
	t.files[fileOf(&w.lock)] = in
	if w.interrupted != 0 {
		t.interrupted.Set(w)
		t.resumable.Set(w)
	} else {
		t.byRange.Set(w)
		t.service.candidates.Set(w)
	}
}

func (t *Table) deleteWaiter(w *waiter) {
	t.change(w.ino)
	t.moveEdge(w, -1)
	t.waiters.Delete(w)
	t.requests.Delete(w)
	t.byOwner.Delete(w)
	t.counts.addRequest(&w.lock, -1)
	in := t.files[fileOf(&w.lock)]
	in.queue = in.queue.remove(interval{&w.lock, w})
	t.putIndex(fileOf(&w.lock), in)
	t.interrupted.Delete(w)
	t.resumable.Delete(w)
	if w.interrupted == 0 {
		t.byRange.Delete(w)
	}
	t.service.forget(w)
	t.ended = append(t.ended, w)
}

func (t *Table) putIndex(f file, in index) {
	if in == (index{}) {
		delete(t.files, f)
	} else {
		t.files[f] = in
	}
}

func add[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// Others counts the locks and requests a session's removal of a file affects: locks of other sessions, and
// waiting requests of all sessions.
func (t *Table) Others(ino ids.Inode, remover ids.Session) (held, waiting int) {
	for _, kind := range kinds {
		in := t.files[file{ino, kind}]
		held += in.held.count()
		waiting += in.queue.count()
	}
	return held - t.heldOf[sessionFile{ino, remover}], waiting
}

func (t *Table) queue(f file, visit func(*waiter) bool) {
	t.waiters.Ascend(&waiter{lock: lock{ino: f.ino, kind: f.kind}}, func(w *waiter) bool {
		return w.ino == f.ino && w.kind == f.kind && visit(w)
	})
}

// passedRequests is the most earlier requests with which a request of an owner with locks is compared.
const passedRequests = 1024

// edge is the first request of a file with more than passedRequests requests up to it.
type edge struct {
	of       file
	position ids.Index // math.MaxUint64: there is none
	requests int       // of the file, if there is none
}

// moveEdge is called when a request enters its queue (by is 1) or leaves it (-1).
func (t *Table) moveEdge(w *waiter, by int) {
	switch e := t.edge; {
	case e == nil || e.of != fileOf(&w.lock) || w.position > e.position:
		return
	case e.position == math.MaxUint64 && e.requests+by <= t.passed:
		e.requests += by
	default:
		t.edge = nil
	}
}
