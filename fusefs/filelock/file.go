package filelock

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// dropLimit is how long a lock waits for the cluster to be told of a close before it.
const dropLimit = 15 * time.Second

// File is what this mount knows of the advisory locks of a file.
//
// The owner of a flock is the number of its handle. That of a record lock is the kernel's: it stands for a process, until that
// closes a descriptor of the file, or for an open file description (F_OFD_SETLK), until that is released. The kernel tells
// of a release when it has closed the file and may have given the number to another one, which then is used first.
type File struct {
	mu       sync.Mutex
	owners   map[Owner]*owned
	dropping map[Owner]*drops // owners whose locks are being released

	keep func(key Owner, may Having, handle uint64) // see KeepIn; may be nil
}

// Having is what an owner may have.
type Having int

// Nothing is what it has of which the cluster knows that it has none.
const (
	Nothing   Having = iota
	Locks            // it may have locks
	Releasing        // it may have locks, and is to have none any more
	Losing           // likewise, and somebody may rely on them
)

// KeepIn has somebody told of each owner that may have locks, before it asks for the first, and by the number of which handle it asked
// last. It comes before anything else.
func (f *File) KeepIn(keep func(key Owner, may Having, handle uint64)) { f.keep = keep }

// kept is called with the file's mutex held, whenever something may have changed for an owner.
func (f *File) kept(key Owner) {
	switch {
	case f.keep == nil:
	case f.dropping[key] != nil && f.dropping[key].lost:
		f.keep(key, Losing, 0)
	case f.dropping[key] != nil:
		f.keep(key, Releasing, 0)
	case f.owners[key] != nil:
		f.keep(key, Locks, f.lastThrough(key).number())
	default:
		f.keep(key, Nothing, 0)
	}
}

// drops are releases of what one owner has. While the cluster has not been told of each, it gets nothing new: the last to come
// would take that along.
type drops struct {
	untold int
	lost   bool          // others may rely on it
	asked  bool          // a request on another host has waited for it
	over   chan struct{} // closed when there is none any more
}

// Owner is who has locks of a file.
type Owner struct {
	Kind   storepb.LockKind
	Number ids.Owner
}

// owned is what an owner may have. It is at least what the cluster knows of.
type owned struct {
	through  []*Description // by which it has asked for locks; the last one it used is last
	ranges   []lockRange
	underway int  // requests
	waiting  int  // of them, those that are suspended
	drops    int  // how often all was released while requests were under way
	crowded  bool // several have been under way since the last time that none was: nobody knows in which order they were done
}

// Request is one that is under way.
type Request struct {
	own   *owned
	drops int // of its owner, when it began
}

// lockRange is bytes, both ends included.
type lockRange struct{ start, end uint64 }

// rangesWithout is what there is left of ranges beside one.
func rangesWithout(ranges []lockRange, cut lockRange) []lockRange {
	var left []lockRange
	for _, r := range ranges {
		if r.start < cut.start {
			left = append(left, lockRange{r.start, min(r.end, cut.start-1)})
		}
		if r.end > cut.end {
			left = append(left, lockRange{max(r.start, cut.end+1), r.end})
		}
	}
	return left
}

func rangeOf(op *storepb.TakeLock) lockRange { return lockRange{op.GetStart(), op.GetEnd()} }

// OwnerOf answers who makes a request.
func OwnerOf(op *storepb.TakeLock) Owner { return Owner{op.GetKind(), ids.Owner(op.GetOwner())} }

// Begin notes that an owner asks for a lock through a description, once what it had is released; ETIMEDOUT if the cluster cannot be
// told of that.
func (f *File) Begin(through *Description, key Owner) (Request, syscall.Errno) {
	for end := time.Now().Add(dropLimit); ; {
		f.mu.Lock()
		d := f.dropping[key]
		if d == nil {
			own := f.owned(key, through)
			f.kept(key)
			own.underway++
			own.crowded = own.crowded || own.underway > 1
			r := Request{own, own.drops}
			f.mu.Unlock()
			return r, 0
		}
		f.mu.Unlock()
		select {
		case <-d.over:
		case <-time.After(time.Until(end)):
			return Request{}, syscall.ETIMEDOUT
		}
	}
}

// owned is what an owner has that asks for locks through a description. It is called with the file's mutex held.
func (f *File) owned(key Owner, through *Description) *owned {
	if f.owners == nil {
		f.owners = make(map[Owner]*owned)
	}
	own, found := f.owners[key]
	if !found {
		own = new(owned)
		f.owners[key] = own
	}
	own.through = append(slices.DeleteFunc(own.through, func(h *Description) bool { return h == through }), through)
	return own
}

// End notes whether a request was done that had begun. If its owner released everything meanwhile, nobody knows whether the
// cluster was or will be told of that before the request was done or after: it answers whether a lock surely stays.
func (f *File) End(r Request, op *storepb.TakeLock, done bool) (stays bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own, unlocked := r.own, op.GetType() == storepb.LockType_UNLOCK
	stays = unlocked || !done || own.drops == r.drops
	switch {
	case done && unlocked && !own.crowded:
		own.ranges = rangesWithout(own.ranges, rangeOf(op))
	case done && !unlocked:
		own.ranges = append(rangesWithout(own.ranges, rangeOf(op)), rangeOf(op))
	}
	if own.underway--; own.underway > 0 {
		return stays
	}
	own.crowded = false
	if len(own.ranges) == 0 {
		delete(f.owners, OwnerOf(op)) // so there is nothing to say when the file is closed
		f.kept(OwnerOf(op))
		if done && unlocked {
			f.forgetSessions(own)
		}
	}
	return stays
}

// Suspend is for a request in progress that waits while no process serves the mount.
func (f *File) Suspend(r Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.own.waiting++
}

// Resume is the opposite of Suspend.
func (f *File) Resume(r Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.own.waiting--
}

// forgetSessions is for an owner that has released everything: should the session end now, nothing is lost through the descriptions
// that nobody else uses. It is called with the file's mutex held.
func (f *File) forgetSessions(released *owned) {
	for _, through := range released.through {
		uses := false
		for _, own := range f.owners {
			uses = uses || slices.Contains(own.through, through)
		}
		if !uses {
			through.forgetSession()
		}
	}
}

// GiveUp is for a request of which nobody can tell what became: all that its owner has is to be released before the function is
// called that it answers. If that is more than the request was about, whoever uses it may believe to have it still: it is
// lost, and the descriptors are of no use any more from now on.
func (f *File) GiveUp(r Request, op *storepb.TakeLock) (lost bool, dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lost = !r.own.hasOnly(op); lost {
		for _, through := range r.own.through {
			through.lose()
		}
	}
	return lost, f.startDrop(OwnerOf(op), lost)
}

// BeginRelease is for a request that was not sent, if it was to release all that its owner has: see GiveUp. Else it answers nil.
func (f *File) BeginRelease(r Request, op *storepb.TakeLock) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op.GetType() != storepb.LockType_UNLOCK || len(r.own.ranges) == 0 || !r.own.hasOnly(op) {
		return nil
	}
	return f.startDrop(OwnerOf(op), false)
}

// hasOnly tells whether an owner has and wants nothing but what a request of it is about that is under way.
func (own *owned) hasOnly(op *storepb.TakeLock) bool {
	left := own.ranges
	if op.GetType() == storepb.LockType_UNLOCK {
		left = rangesWithout(left, rangeOf(op))
	}
	return len(left) == 0 && own.underway == 1
}

// LockedThrough answers nil if an owner has no record locks.
func (f *File) LockedThrough(owner ids.Owner) *Description {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastThrough(Owner{storepb.LockKind_RECORD, owner})
}

// lastThrough is called with the file's mutex held.
func (f *File) lastThrough(key Owner) *Description {
	own, found := f.owners[key]
	if !found {
		return nil
	}
	return own.through[len(own.through)-1]
}

// RecordOwners are those who took their record locks through a description.
func (f *File) RecordOwners(through *Description) (owners []ids.Owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range slices.Collect(maps.Keys(f.owners)) {
		if key.Kind == storepb.LockKind_RECORD && f.lastThrough(key) == through {
			owners = append(owners, key.Number)
		}
	}
	return owners
}

// BeginDrop is undone by the function that it answers: nil if there is nothing to release, or if through is given and a record
// lock's owner has locked through another description since.
func (f *File) BeginDrop(key Owner, through *Description) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, found := f.owners[key]; !found {
		return nil
	}
	if key.Kind == storepb.LockKind_RECORD && through != nil && f.lastThrough(key) != through {
		return nil
	}
	return f.startDrop(key, false)
}

// DropLeft begins the drop of what an owner may have that another process has left: lost, if somebody may rely on it.
func (f *File) DropLeft(key Owner, lost bool) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startDrop(key, lost)
}

// startDrop is called with the file's mutex held. Requests that are under way go on, and may be done after it.
func (f *File) startDrop(key Owner, lost bool) (dropped func()) {
	if own, found := f.owners[key]; found && own.underway > 0 {
		own.ranges = nil
		own.drops++
	} else {
		delete(f.owners, key)
	}
	if f.dropping == nil {
		f.dropping = make(map[Owner]*drops)
	}
	d := f.dropping[key]
	if d == nil {
		d = &drops{over: make(chan struct{})}
		f.dropping[key] = d
	}
	d.untold++
	d.lost = d.lost || lost
	f.kept(key)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if d.untold--; d.untold == 0 {
			close(d.over)
			delete(f.dropping, key)
			f.kept(key)
		}
	}
}

// IsDropping tells whether what an owner has is being released.
func (f *File) IsDropping(owner Owner) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropping[owner] != nil
}

// MayAwaitDrop reports whether a request on another host may wait until the locks of an owner are released: once for each release. It is
// true if nothing is being released.
func (f *File) MayAwaitDrop(owner Owner) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.dropping[owner]
	if d == nil {
		return true
	}
	may := !d.asked
	d.asked = true
	return may
}

// AwaitDrop waits until that is over; false: the cluster could not be told.
func (f *File) AwaitDrop(owner Owner) bool { return f.AwaitDropFor(owner, dropLimit) }

// AwaitDropFor is AwaitDrop for so long at most.
func (f *File) AwaitDropFor(owner Owner, limit time.Duration) bool {
	f.mu.Lock()
	drops := f.dropping[owner]
	f.mu.Unlock()
	if drops == nil {
		return true
	}
	select {
	case <-drops.over:
		return true
	case <-time.After(limit):
		return false
	}
}
