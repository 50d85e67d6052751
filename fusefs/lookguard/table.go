package lookguard

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
)

// Process identifies a process of this host, also after reuse of its pid.
type Process struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks since boot
}

const (
	// Age is how long an observation guards its process.
	Age = 10 * time.Minute
	// mostDirectories limits the directories sent with a removal: any of them may be the lock around the
	// name.
	mostDirectories = 16
)

// Name is a name in a directory.
type Name struct {
	Parent ids.Inode
	Name   string
}

// table has observations of names, by process. It is bounded. When it is full, the users with the largest
// shares lose observations, first the oldest of their largest processes. So no user loses any because of
// others. The guards of a user with too many observations end, as if the user's processes had not read the
// locks.
//
// Observations of ended processes are useless, as each relative has its own, and are soon dropped.
type table struct {
	entries map[entryKey]*entry
	viewers map[Process]*viewer // the first of each process, linked to those for other users
	shares  map[uint32]*share
	in      map[ids.Inode]int // number of observed names in a directory
	bytes   int
	most    int
	peak    int // most entries since the maps were made

	hasEnded func(Process) bool
	began    time.Time
	clock    time.Duration
	swept    time.Duration
	sweepAt  int // number of processes
}

const (
	// mostBytes limits the memory of all observations, by the costs below. It is enough for 100,000 names of
	// one process, or for 120,000 processes with one name each.
	mostBytes = 32 << 20
	// The most memory of each, with its places in maps that have just grown.
	entryCost, viewerCost, nameCost, shareCost = 128, 144, 160, 512
	// keptDirectories limits the recorded directories of a process. A removal sends fewer.
	keptDirectories = 4 * mostDirectories
	// sweepInterval is the time between sweeps of old observations and ended processes. Twice as many
	// processes as after the last sweep also start one.
	sweepInterval = time.Minute
	fewViewers    = 1024
	shrinkPortion = 8 // of a full table, so that it is not full again at once
)

// observed is an observation of a lock under a name; an empty name means a listing.
type observed struct {
	token     ids.Token
	at        time.Duration // since the table began; strictly rising
	directory bool
	made      bool // by a process of the family, or written to
	empty     bool // when it was read
}

type entry struct {
	observed
	viewer       *viewer
	name         *sharedName
	older, newer *entry // of the viewer
}

type entryKey struct {
	viewer *viewer
	name   *sharedName
}

// viewer is a process, with its descendants, acting for one user.
type viewer struct {
	process        Process
	share          *share
	next           *viewer // of the process, for another user
	bytes          int
	oldest, newest *entry
	directories    []*entry // oldest first
}

// share is one user's share of the table, with no data of others.
type share struct {
	uid   uint32
	names map[Name]*sharedName
	bytes int
}

// sharedName is stored once for all its observations.
type sharedName struct {
	Name
	entries int
}

func newTable() *table {
	return &table{
		entries: make(map[entryKey]*entry), viewers: make(map[Process]*viewer), shares: make(map[uint32]*share),
		in: make(map[ids.Inode]int), most: mostBytes, hasEnded: hasEnded, began: time.Now(), sweepAt: fewViewers,
	}
}

// hasEnded reports whether a process has certainly ended. It returns false if its pid is in use again.
func hasEnded(process Process) bool { return thread.HasEnded(uint32(process.PID)) }

// now returns the time for an observation.
func (t *table) now() time.Duration {
	t.clock = max(time.Since(t.began), t.clock+1)
	return t.clock
}

func (t *table) isEmpty() bool { return len(t.entries) == 0 }

// knows reports whether there are observations in a directory.
func (t *table) knows(dir ids.Inode) bool { return t.in[dir] > 0 }

// note replaces the observation of a name by a process for a user. The table may be too large afterwards.
func (t *table) note(process Process, uid uint32, key Name, seen observed) {
	v := t.viewer(process, uid)
	named := v.share.names[key]
	if named == nil {
		named = &sharedName{Name: key}
		v.share.names[key] = named
		t.charge(v.share, nameCost+len(key.Name))
	}
	l := t.entries[entryKey{v, named}]
	if l == nil {
		l = &entry{viewer: v, name: named}
		t.entries[entryKey{v, named}] = l
		t.peak = max(t.peak, len(t.entries))
		named.entries++
		t.chargeViewer(v, entryCost)
		if key.Name != "" {
			t.in[key.Parent]++
		}
	} else {
		seen.made = seen.made || l.made && l.token == seen.token
		v.unlink(l)
	}
	l.observed = seen
	v.link(l)
}

func (t *table) viewer(process Process, uid uint32) *viewer {
	first := t.viewers[process]
	for v := first; v != nil; v = v.next {
		if v.share.uid == uid {
			return v
		}
	}
	s := t.shares[uid]
	if s == nil {
		s = &share{uid: uid, names: make(map[Name]*sharedName)}
		t.shares[uid] = s
		t.charge(s, shareCost)
	}
	v := &viewer{process: process, share: s, next: first}
	t.viewers[process] = v
	t.chargeViewer(v, viewerCost)
	return v
}

func (t *table) chargeViewer(v *viewer, bytes int) {
	v.bytes += bytes
	t.charge(v.share, bytes)
}

func (t *table) charge(s *share, bytes int) {
	s.bytes += bytes
	t.bytes += bytes
}

// link appends the newest observation.
func (v *viewer) link(l *entry) {
	l.older, l.newer = v.newest, nil
	if v.newest != nil {
		v.newest.newer = l
	} else {
		v.oldest = l
	}
	v.newest = l
	if l.directory {
		if len(v.directories) == keptDirectories {
			v.directories = slices.Delete(v.directories, 0, 1)
		}
		v.directories = append(v.directories, l)
	}
}

func (v *viewer) unlink(l *entry) {
	if l.older != nil {
		l.older.newer = l.newer
	} else {
		v.oldest = l.newer
	}
	if l.newer != nil {
		l.newer.older = l.older
	} else {
		v.newest = l.older
	}
	if l.directory {
		v.directories = slices.DeleteFunc(v.directories, func(kept *entry) bool { return kept == l })
	}
}

// of returns the observations of a name by a process, for each user.
func (t *table) of(process Process, key Name) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for v := t.viewers[process]; v != nil; {
			next := v.next // the last entry removes its viewer
			if named := v.share.names[key]; named != nil {
				if l := t.entries[entryKey{v, named}]; l != nil && !yield(l) {
					return
				}
			}
			v = next
		}
	}
}

// last returns the last observation of a name by a process, unless it is too old.
func (t *table) last(process Process, key Name) (seen observed, known bool) {
	for l := range t.of(process, key) {
		if !known || l.at > seen.at {
			seen, known = l.observed, true
		}
	}
	return seen, known && !t.isOld(seen)
}

func (t *table) isOld(seen observed) bool { return time.Since(t.began)-seen.at > Age }

// made reports whether a process, or one of its descendants, made the observed lock.
func (t *table) made(process Process, key Name, token ids.Token) bool {
	for l := range t.of(process, key) {
		if l.made && l.token == token {
			return true
		}
	}
	return false
}

// directories returns names of directories observed by a process.
func (t *table) directories(process Process) (names []Name) {
	for v := t.viewers[process]; v != nil; v = v.next {
		for _, l := range v.directories {
			names = append(names, l.name.Name)
		}
	}
	return names
}

// forget drops the observations of a name by a process.
func (t *table) forget(process Process, key Name) {
	for l := range t.of(process, key) {
		t.drop(l)
	}
}

// drop removes an entry, and its viewer, name and share after their last entry.
func (t *table) drop(l *entry) {
	v, named, s := l.viewer, l.name, l.viewer.share
	v.unlink(l)
	delete(t.entries, entryKey{v, named})
	t.chargeViewer(v, -entryCost)
	if named.Name.Name != "" {
		if t.in[named.Parent]--; t.in[named.Parent] == 0 {
			delete(t.in, named.Parent)
		}
	}
	if named.entries--; named.entries == 0 {
		delete(s.names, named.Name)
		t.charge(s, -nameCost-len(named.Name.Name))
	}
	if v.newest != nil {
		return
	}
	t.chargeViewer(v, -viewerCost)
	t.dropViewer(v)
	if len(s.names) == 0 {
		delete(t.shares, s.uid)
		t.charge(s, -shareCost)
	}
}

func (t *table) dropViewer(v *viewer) {
	first := t.viewers[v.process]
	if first != v {
		for first.next != v {
			first = first.next
		}
		first.next = v.next
		return
	}
	if v.next == nil {
		delete(t.viewers, v.process)
		return
	}
	t.viewers[v.process] = v.next
}

// bound keeps the table within its limits.
func (t *table) bound() {
	if t.clock-t.swept >= sweepInterval || len(t.viewers) >= t.sweepAt || t.bytes > t.most {
		t.sweep()
	}
	if t.bytes > t.most {
		t.shrink(t.most - t.most/shrinkPortion)
	}
}

// sweep drops old observations and those of ended processes.
func (t *table) sweep() {
	for process, v := range t.viewers {
		ended := t.hasEnded(process)
		for v != nil {
			next := v.next
			for v.oldest != nil && (ended || t.isOld(v.oldest.observed)) {
				t.drop(v.oldest)
			}
			v = next
		}
	}
	t.swept, t.sweepAt = t.clock, max(fewViewers, 2*len(t.viewers))
	if len(t.entries) < t.peak/8 {
		t.compact()
	}
}

// compact releases the memory of shrunken maps.
func (t *table) compact() {
	t.entries, t.viewers, t.in = copied(t.entries), copied(t.viewers), copied(t.in)
	for _, s := range t.shares {
		s.names = copied(s.names)
	}
	t.peak = len(t.entries)
}

func copied[K comparable, V any](m map[K]V) map[K]V {
	small := make(map[K]V, len(m))
	maps.Copy(small, m)
	return small
}

// shrink drops entries of the users with the largest shares, down to one common level, until at most left
// bytes remain.
func (t *table) shrink(left int) {
	var sizes []int
	for _, s := range t.shares {
		sizes = append(sizes, s.bytes)
	}
	most := level(sizes, left)
	large := make(map[*share][]*viewer)
	for _, v := range t.viewers {
		for ; v != nil; v = v.next {
			if v.share.bytes > most {
				large[v.share] = append(large[v.share], v)
			}
		}
	}
	for s, viewers := range large {
		s.shrink(t, viewers, most)
	}
}

// shrink drops entries of the largest processes, down to one common level. It begins with those without an
// observation for the longest time.
func (s *share) shrink(t *table, viewers []*viewer, left int) {
	slices.SortFunc(viewers, func(a, b *viewer) int { return cmp.Compare(a.newest.at, b.newest.at) })
	for budget := left; s.bytes > left; budget /= 2 { // names are not counted by viewer
		var sizes []int
		for _, v := range viewers {
			sizes = append(sizes, v.bytes)
		}
		most := level(sizes, budget)
		for _, v := range viewers {
			for s.bytes > left && v.bytes > most {
				t.drop(v.oldest)
			}
		}
	}
}

// level returns the most that each may keep for all to stay within a common limit.
func level(sizes []int, limit int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if others := len(sizes) - i; size > limit/others {
			return limit / others
		}
		limit -= size
	}
	return math.MaxInt
}

// sorted returns all entries in their order.
func (t *table) sorted() []*entry {
	all := make([]*entry, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(a.at - b.at) })
	return all
}
