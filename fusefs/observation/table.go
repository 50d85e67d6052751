package observation

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

// Process is a process of this host, and never another one.
type Process struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks since boot
}

const (
	// Age is how long a process is held to what it saw.
	Age = 10 * time.Minute
	// mostDirectories is how many directories go with a removal: any of them may be the lock that the name
	// is in.
	mostDirectories = 16
)

// Name is a name in a directory.
type Name struct {
	Parent ids.Inode
	Name   string
}

// table holds observations of names, by process. It is bounded: when it is full, the users who have most of it lose of theirs,
// first what their processes with most of them saw longest ago. So nobody loses anything by what another user does, and who
// floods it is no longer held to what he saw, as if he had not looked.
//
// What a process saw that has ended matters to nobody any more, as each of its family has its own observation, and goes soon.
type table struct {
	entries map[entryKey]*entry
	viewers map[Process]*viewer // the first of each process; those for other users follow
	shares  map[uint32]*share
	in      map[ids.Inode]int // how many names that are in a directory were seen
	bytes   int
	most    int // mostBytes
	peak    int // how many entries there have been since the maps were made

	hasEnded func(Process) bool
	began    time.Time
	clock    time.Duration
	swept    time.Duration
	sweepAt  int // so many processes
}

const (
	// mostBytes is what all the observations of a mount take at most, by the costs below. It is enough for 100,000 names that one
	// process saw, or for 120,000 processes that saw one each.
	mostBytes = 32 << 20
	// What each takes in memory at most, with its places in maps that have just grown.
	entryCost, viewerCost, nameCost, shareCost = 128, 144, 160, 512
	// keptDirectories is how many of the directories that a process saw last are known to be some. A removal takes fewer along.
	keptDirectories = 4 * mostDirectories
	// sweepInterval is how often what is too old, or of processes that have ended, is dropped; it is, too, when there are twice as
	// many processes as after the last time.
	sweepInterval = time.Minute
	fewViewers    = 1024
	shrinkPortion = 8 // of a table that is full, so that it is not full again at once
)

// observed is what a process saw: a lock under a name or, under the empty one, that it listed a directory.
type observed struct {
	token     ids.Token
	at        time.Duration // since the table began; later for what was noted later
	directory bool
	made      bool // by a process of the family, or written to
	empty     bool // when it was read
}

// entry is an observation in the table.
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

// viewer is a process as far as it, or its descendants, acted for one user.
type viewer struct {
	process        Process
	share          *share
	next           *viewer // of the process, for another user
	bytes          int
	oldest, newest *entry
	directories    []*entry // oldest first
}

// share is what one user has of the table. Nothing in it is shared with others.
type share struct {
	uid   uint32
	names map[Name]*sharedName
	bytes int
}

// sharedName is stored once for all that saw it.
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

// hasEnded tells of processes that have surely ended. One whose pid is another's by now is taken for alive.
func hasEnded(process Process) bool { return thread.HasEnded(uint32(process.PID)) }

// now is the time of an observation.
func (t *table) now() time.Duration {
	t.clock = max(time.Since(t.began), t.clock+1)
	return t.clock
}

func (t *table) isEmpty() bool { return len(t.entries) == 0 }

// knows tells whether anybody has seen a name that is in a directory.
func (t *table) knows(dir ids.Inode) bool { return t.in[dir] > 0 }

// note puts an observation in the place of what a process saw of that name before for the same user. The table may be too large then.
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

// link puts what was seen now after all that was seen before.
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

// of answers what a process saw of a name, for each user.
func (t *table) of(process Process, key Name) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for v := t.viewers[process]; v != nil; {
			next := v.next // the viewer goes with its last entry
			if named := v.share.names[key]; named != nil {
				if l := t.entries[entryKey{v, named}]; l != nil && !yield(l) {
					return
				}
			}
			v = next
		}
	}
}

// last answers what a process saw last of a name, unless that is too long ago.
func (t *table) last(process Process, key Name) (seen observed, known bool) {
	for l := range t.of(process, key) {
		if !known || l.at > seen.at {
			seen, known = l.observed, true
		}
	}
	return seen, known && !t.isOld(seen)
}

func (t *table) isOld(seen observed) bool { return time.Since(t.began)-seen.at > Age }

// made tells whether a process, or one that it is an ancestor of, made the lock that it saw.
func (t *table) made(process Process, key Name, token ids.Token) bool {
	for l := range t.of(process, key) {
		if l.made && l.token == token {
			return true
		}
	}
	return false
}

// directories answers names of directories that a process saw.
func (t *table) directories(process Process) (names []Name) {
	for v := t.viewers[process]; v != nil; v = v.next {
		for _, l := range v.directories {
			names = append(names, l.name.Name)
		}
	}
	return names
}

// forget drops what a process saw of a name.
func (t *table) forget(process Process, key Name) {
	for l := range t.of(process, key) {
		t.drop(l)
	}
}

// drop takes an entry out of the table, and with the last one that needs them its viewer, name and share.
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

// bound keeps the table in its bounds.
func (t *table) bound() {
	if t.clock-t.swept >= sweepInterval || len(t.viewers) >= t.sweepAt || t.bytes > t.most {
		t.sweep()
	}
	if t.bytes > t.most {
		t.shrink(t.most - t.most/shrinkPortion)
	}
}

// sweep drops what counts no more.
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

// compact gives back what maps keep that were larger.
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

// shrink drops entries of the users with the largest shares, all down to the same, until no more bytes are left.
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

// shrink takes from the processes with the most, all down to the same, first from who has not seen anything for the longest time.
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

// level answers the most that each may keep for all to keep no more than a limit together.
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

// sorted is all that is in the table, as it was noted.
func (t *table) sorted() []*entry {
	all := make([]*entry, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(a.at - b.at) })
	return all
}
