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

// dropLimit is how long a lock request waits for the cluster to record an earlier close.
const dropLimit = 15 * time.Second

// File is this mount's state of the advisory locks of a file.
//
// The owner of a flock is the number of its handle. The owner of a record lock is a number of the kernel. It
// stands for a process, until the process closes a descriptor of the file, or for an open file description
// (F_OFD_SETLK), until its release. The kernel reports a release after the file is closed. By then another
// description may have, and use, the number.
type File struct {
	mu       sync.Mutex
	owners   map[Owner]*owned
	dropping map[Owner]*drops // owners with a release in progress

	keep func(key Owner, may Having, handle uint64) // see KeepIn; may be nil
}

// Having is a state of an owner's locks.
type Having int

// Nothing says that the cluster knows of no locks.
const (
	Nothing   Having = iota
	Locks            // possible locks
	Releasing        // possible locks, being released
	Losing           // likewise, and programs may rely on them
)

// KeepIn sets a function that is called for each owner before its first request, with the handle of its last
// request. Call it first.
func (f *File) KeepIn(keep func(key Owner, may Having, handle uint64)) { f.keep = keep }

// kept is called after each possible change for an owner. It needs the mutex.
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

// drops are releases of one owner's locks. Until the cluster has recorded all, the owner gets no new lock:
// the last release would include it.
type drops struct {
	untold int
	lost   bool          // programs may rely on the locks
	asked  bool          // a request on another host has waited for it
	over   chan struct{} // closed at the end of all releases
}

// Owner is an owner of locks of a file.
type Owner struct {
	Kind   storepb.LockKind
	Number ids.Owner
}

// owned has an owner's possible locks, at least those known to the cluster.
type owned struct {
	through  []*Description // of its requests; the last used is last
	ranges   []lockRange
	underway int  // requests
	waiting  int  // suspended ones of them
	drops    int  // how often all was released during requests
	crowded  bool // several requests at once, in an unknown order, since the last time without one
}

// Request is a request under way.
type Request struct {
	own   *owned
	drops int // of its owner, at its begin
}

// lockRange is a range of bytes, both ends included.
type lockRange struct{ start, end uint64 }

// rangesWithout returns the ranges without a cut.
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

// OwnerOf returns the owner of a request.
func OwnerOf(op *storepb.TakeLock) Owner { return Owner{op.GetKind(), ids.Owner(op.GetOwner())} }

// Begin records the begin of a request through a description, after the release of the owner's earlier locks.
// It returns ETIMEDOUT if the cluster does not record that release.
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

// owned returns the state of an owner with a request through a description. It needs the mutex.
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

// End records the end of a request, done or not, and reports whether a lock certainly stays. It does not if
// the owner released everything meanwhile: the order in the cluster is unknown.
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
		delete(f.owners, OwnerOf(op)) // so a close needs no release
		f.kept(OwnerOf(op))
		if done && unlocked {
			f.forgetSessions(own)
		}
	}
	return stays
}

// Suspend records that a request waits while no process serves the mount.
func (f *File) Suspend(r Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.own.waiting++
}

// Resume undoes Suspend.
func (f *File) Resume(r Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.own.waiting--
}

// forgetSessions clears the sessions of descriptions after their last owner has released everything: the end
// of the session now loses nothing. It needs the mutex.
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

// GiveUp handles a request with an unknown outcome. The caller releases all of the owner's locks, then calls
// dropped. If the owner may have more locks than the request's, programs may still rely on them. Then GiveUp
// returns lost, and all the owner's descriptions are lost from now on.
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

// GiveBack handles a request that got its lock after its program was killed. The caller releases the owner's
// locks, then calls dropped. If the owner may have more locks than the request's, GiveBack returns nil: the
// release would include those.
func (f *File) GiveBack(r Request, op *storepb.TakeLock) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !r.own.hasOnly(op) {
		return nil
	}
	return f.startDrop(OwnerOf(op), false)
}

// BeginRelease handles a request that was not sent. If it was to release all of its owner's locks, the caller
// does so later, as after GiveUp. Otherwise it returns nil.
func (f *File) BeginRelease(r Request, op *storepb.TakeLock) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op.GetType() != storepb.LockType_UNLOCK || len(r.own.ranges) == 0 || !r.own.hasOnly(op) {
		return nil
	}
	return f.startDrop(OwnerOf(op), false)
}

// hasOnly reports whether a request under way concerns all that its owner has and wants.
func (own *owned) hasOnly(op *storepb.TakeLock) bool {
	left := own.ranges
	if op.GetType() == storepb.LockType_UNLOCK {
		left = rangesWithout(left, rangeOf(op))
	}
	return len(left) == 0 && own.underway == 1
}

// LockedThrough returns the last description of an owner's record locks; nil: it has none.
func (f *File) LockedThrough(owner ids.Owner) *Description {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastThrough(Owner{storepb.LockKind_RECORD, owner})
}

// lastThrough needs the mutex.
func (f *File) lastThrough(key Owner) *Description {
	own, found := f.owners[key]
	if !found {
		return nil
	}
	return own.through[len(own.through)-1]
}

// RecordOwners returns the owners with record locks last taken through a description.
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

// BeginDrop begins a release of an owner's locks, and returns the function that ends it. It returns nil
// without locks, or if the owner has since locked through a description other than a non-nil through.
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

// DropLeft begins the release of locks left by another process; lost: programs may rely on them.
func (f *File) DropLeft(key Owner, lost bool) (dropped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startDrop(key, lost)
}

// startDrop needs the mutex. Requests under way continue, and may be done after it.
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

// IsDropping reports whether an owner's locks are being released.
func (f *File) IsDropping(owner Owner) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropping[owner] != nil
}

// MayAwaitDrop reports whether a request on another host may wait for the release of an owner's locks: once
// for each release. It returns true without a release.
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

// AwaitDrop waits for the end of a release, and reports whether the cluster has recorded it.
func (f *File) AwaitDrop(owner Owner) bool { return f.AwaitDropFor(owner, dropLimit) }

// AwaitDropFor is AwaitDrop with a limit.
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
