package fusefs

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// Process is a process of this host, and never another one.
type Process struct {
	PID   int    // in the pid namespace of this process
	Start uint64 // clock ticks since boot
}

const (
	// lookAge is how long a process is held to what it saw.
	lookAge = 10 * time.Minute
	// mostDirectories is how many directories go with a removal: any of them may be the lock that the name
	// is in.
	mostDirectories = 16
)

// looks remembers which lock a process saw last under a name, when it read or made it. If it removes or
// replaces that name later, the cluster compares: breaking a stale lock is to look, to judge and to remove,
// and by then it may be another lock, whose holder is alive.
//
// What a process sees, its ancestors in the same process group see too: a script looks with one command
// and removes with another. A removal is held to what the nearest of them saw. It is a judgement, not a memory: who sees that
// a name is data has forgotten it, and so has who removed it; a process that lists a directory itself (rm -rf, find -delete)
// removes what it found there, whatever its ancestors saw before.
type looks struct {
	mu      sync.Mutex
	table   *lookTable
	version atomic.Uint64 // counts the notes
}

type name struct {
	parent uint64
	name   string
}

func newLooks() *looks { return &looks{table: newLookTable()} }

// How a process came to see a lock.
type sight int

const (
	read sight = iota
	made
	madeDirectory
)

// note remembers what a family, nearest first, has seen at the request of a user: a name, and then the directory it is in.
func (l *looks) note(family []Process, uid uint32, locks []*storepb.Look, how sight) (version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.table.now()
	for i, lock := range locks {
		key := name{lock.GetParent(), string(lock.GetName())}
		for _, process := range family {
			if lock.GetData() {
				l.table.forget(process, key)
				continue
			}
			l.table.note(process, uid, key, sighting{
				token: lock.GetToken(), at: at, directory: i > 0 || how == madeDirectory, made: how != read, empty: lock.GetEmpty(),
			})
		}
	}
	l.table.bound()
	return l.version.Add(1)
}

// forget is for a name that a family has removed or moved away.
func (l *looks) forget(family []Process, gone name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version.Add(1)
	for _, process := range family {
		l.table.forget(process, gone)
	}
}

// areNone tells that there is nothing to be held to.
func (l *looks) areNone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.isEmpty()
}

// areIn tells whether anybody has seen something in a directory.
func (l *looks) areIn(dir uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.knows(dir)
}

// list notes that a process has listed a directory.
func (l *looks) list(process Process, uid uint32, dir uint64) (version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table.note(process, uid, name{parent: dir}, sighting{at: l.table.now()})
	l.table.bound()
	return l.version.Add(1)
}

// recall answers what a family saw last of some names, and of directories that these may be in.
func (l *looks) recall(family []Process, wanted ...name) []*storepb.Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(family) == 0 {
		return nil
	}
	var answer []*storepb.Look
	add := func(key name, seen sighting) {
		answer = append(answer, &storepb.Look{Parent: key.parent, Name: []byte(key.name), Token: seen.token, Empty: seen.empty})
	}
	for _, key := range wanted {
		if seen, held := l.heldTo(family, family, key); held {
			seen.empty = seen.empty && !l.made(family, key, seen.token)
			add(key, seen)
		}
	}
	directories := make(map[name]sighting)
	passed := make(map[name]bool)
	for i, process := range family {
		for _, key := range l.table.directories(process) {
			if passed[key] || slices.Contains(wanted, key) {
				continue
			}
			passed[key] = true
			if seen, held := l.heldTo(family, family[i:], key); held && seen.directory {
				directories[key] = seen
			}
		}
	}
	last := slices.SortedFunc(maps.Keys(directories), func(a, b name) int {
		return cmp.Compare(directories[b].at, directories[a].at)
	})
	for _, key := range last[:min(len(last), mostDirectories)] {
		add(key, directories[key])
	}
	return answer
}

// heldTo answers what the nearest of those of a family that know a name saw of it, unless the family's nearest of all has
// listed the directory since.
func (l *looks) heldTo(family, those []Process, key name) (seen sighting, held bool) {
	for _, process := range those {
		if seen, known := l.table.last(process, key); known {
			listed, found := l.table.last(family[0], name{parent: key.parent})
			return seen, !found || seen.at >= listed.at
		}
	}
	return sighting{}, false
}

// made tells whether a lock is the family's own, which may be empty for as long as it likes.
func (l *looks) made(family []Process, key name, token uint64) bool {
	return slices.ContainsFunc(family, func(process Process) bool { return l.table.made(process, key, token) })
}

// sawThrough notes what a thread reads or writes through a handle. Nothing seen now means that the name is
// another file's, so that a reader sees what was there before.
func (fs *fileSystem) sawThrough(h *fileHandle, by fuse.Caller, seen []*storepb.Look, how sight) {
	if fs.family == nil {
		return
	}
	if seen = h.news(by.Pid, seen, how, fs.looks.version.Load()); len(seen) > 0 {
		h.notedAt(fs.saw(by, seen, how))
	}
}

// saw notes what a thread has seen or made. To find out who the thread is takes some time, and so is spared if there is
// nothing to forget of what is data. It answers the version of the looks with which that is noted.
func (fs *fileSystem) saw(by fuse.Caller, seen []*storepb.Look, how sight) (version uint64) {
	version = fs.looks.version.Load()
	if fs.family == nil || !slices.ContainsFunc(seen, func(s *storepb.Look) bool { return !s.GetData() || fs.looks.areIn(s.GetParent()) }) {
		return version
	}
	return fs.looks.note(slices.Collect(fs.family(by.Pid)), by.Uid, seen, how)
}

// listing is that of a directory, and the version of the looks with which it was noted.
type listing struct{ dir, version uint64 }

// sameThread is for how long the number of a thread is taken to be its own: it comes back, but not so soon.
const sameThread = time.Second

// listed notes that a thread lists a directory, unless that is the last thing that was noted.
func (fs *fileSystem) listed(by fuse.Caller, dir uint64) {
	if fs.family == nil || !fs.looks.areIn(dir) {
		return
	}
	last, age, found := fs.listings.Get(by.Pid)
	if found && last == (listing{dir, fs.looks.version.Load()}) && age < sameThread {
		return
	}
	for process := range fs.family(by.Pid) {
		fs.listings.Note(by.Pid, listing{dir, fs.looks.list(process, by.Uid, dir)})
		return
	}
}

// tookAway notes that a thread has removed a name, or moved it away.
func (fs *fileSystem) tookAway(by fuse.Caller, gone place) {
	if fs.family != nil && fs.looks.areIn(gone.parent) {
		fs.looks.forget(slices.Collect(fs.family(by.Pid)), name{gone.parent, string(gone.name)})
	}
}

// seenBy answers what a thread is held to if it removes or replaces one of these names.
func (fs *fileSystem) seenBy(places ...place) []*storepb.Look {
	if fs.family == nil || fs.looks.areNone() {
		return nil
	}
	var names []name
	for _, at := range places {
		names = append(names, name{at.parent, string(at.name)})
	}
	return fs.looks.recall(slices.Collect(fs.family(places[0].caller.GetPid())), names...)
}

// walked is a name that a thread has just looked up, and what it was: the kernel opens by inode.
type walked struct {
	ino  uint64
	seen []*storepb.Look
}

// cameBy answers the name by which a thread came to an inode, as it was when it was looked up.
func (fs *fileSystem) cameBy(thread uint32, ino uint64) []*storepb.Look {
	found, _, _ := fs.walks.Take(thread, func(w walked) bool { return w.ino == ino })
	return found.seen
}
