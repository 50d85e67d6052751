package fusefs

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/raftstore/storepb"
)

// Process is a process of this host, and never another one.
type Process struct {
	PID   int
	Start uint64 // clock ticks since boot
}

const (
	// lookAge is how long a process is held to what it saw.
	lookAge = 10 * time.Minute
	// lookSweep is how often what is older is dropped.
	lookSweep = time.Minute
	// mostNames is how many names are remembered of one process; beyond, some are forgotten.
	mostNames = 1 << 16
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
	mu        sync.Mutex
	byProcess map[Process]seen
	swept     time.Time
	version   atomic.Uint64 // counts the notes
}

// seen is what a process saw.
type seen struct {
	names       map[name]look
	directories map[name]bool // those of the names that were directories
	listed      map[uint64]time.Time
}

func newSeen() seen {
	return seen{make(map[name]look), make(map[name]bool), make(map[uint64]time.Time)}
}

func (s seen) set(key name, l look) {
	s.names[key] = l
	if l.directory {
		s.directories[key] = true
	} else {
		delete(s.directories, key)
	}
}

func (s seen) forget(key name) {
	delete(s.names, key)
	delete(s.directories, key)
}

type name struct {
	parent uint64
	name   string
}

type look struct {
	token     uint64
	directory bool
	made      bool // by a process of the family, or written to
	empty     bool // when it was read
	at        time.Time
}

func newLooks() *looks { return &looks{byProcess: make(map[Process]seen)} }

// How a process came to see a lock.
type sight int

const (
	read sight = iota
	made
	madeDirectory
)

// note remembers what a family, nearest first, has seen: a name, and then the directory it is in.
func (l *looks) note(family []Process, locks []*storepb.Look, how sight) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	l.version.Add(1)
	for _, process := range family {
		saw, found := l.byProcess[process]
		for i, lock := range locks {
			key := name{lock.GetParent(), string(lock.GetName())}
			if lock.GetData() {
				saw.forget(key)
				continue
			}
			if !found {
				saw, found = newSeen(), true
				l.byProcess[process] = saw
			}
			before, known := saw.names[key]
			if !known && len(saw.names) >= mostNames {
				saw.forgetOne()
			}
			saw.set(key, look{
				token: lock.GetToken(), directory: i > 0 || how == madeDirectory, at: now, empty: lock.GetEmpty(),
				made: how != read || known && before.made && before.token == lock.GetToken(),
			})
		}
	}
}

func (s seen) forgetOne() {
	for key := range s.names {
		s.forget(key)
		return
	}
}

// forget is for names that a family has removed or moved away.
func (l *looks) forget(family []Process, names ...name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version.Add(1)
	for _, process := range family {
		for _, key := range names {
			l.byProcess[process].forget(key)
		}
	}
}

// isEmpty tells that there is nothing to be held to.
func (l *looks) isEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byProcess) == 0
}

// list notes that the nearest of a family has listed a directory, if any of them saw something there before.
func (l *looks) list(family []Process, dir uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	saw, found := l.byProcess[family[0]]
	if !found && !slices.ContainsFunc(family, func(process Process) bool { return len(l.byProcess[process].names) > 0 }) {
		return
	}
	if !found {
		saw = newSeen()
		l.byProcess[family[0]] = saw
	}
	if len(saw.listed) >= mostNames {
		clear(saw.listed)
	}
	l.version.Add(1)
	saw.listed[dir] = time.Now()
}

func (l *looks) sweep(now time.Time) {
	if now.Sub(l.swept) < lookSweep {
		return
	}
	l.swept = now
	for process, saw := range l.byProcess {
		for key, look := range saw.names {
			if now.Sub(look.at) > lookAge {
				saw.forget(key)
			}
		}
		for dir, at := range saw.listed {
			if now.Sub(at) > lookAge {
				delete(saw.listed, dir)
			}
		}
		if len(saw.names) == 0 && len(saw.listed) == 0 {
			delete(l.byProcess, process)
		}
	}
}

// recall answers what a family saw last of some names, and of directories that these may be in.
func (l *looks) recall(family []Process, wanted ...name) []*storepb.Look {
	type found struct {
		key name
		look
	}
	var recalled, directories []found
	now := time.Now()
	l.mu.Lock()
	var listed map[uint64]time.Time
	if len(family) > 0 {
		listed = l.byProcess[family[0]].listed
	}
	for i, process := range family {
		saw := l.byProcess[process]
		sees := func(key name) (look, bool) {
			seen, known := saw.names[key]
			return seen, known && now.Sub(seen.at) <= lookAge && !seen.at.Before(listed[key.parent]) && !l.nearerKnows(family[:i], key)
		}
		for _, key := range wanted {
			if seen, ok := sees(key); ok {
				seen.empty = seen.empty && !l.made(family, key, seen.token)
				recalled = append(recalled, found{key, seen})
			}
		}
		for key := range saw.directories {
			if seen, ok := sees(key); ok && !slices.Contains(wanted, key) {
				directories = append(directories, found{key, seen})
			}
		}
	}
	l.mu.Unlock()
	slices.SortFunc(directories, func(a, b found) int { return b.at.Compare(a.at) })
	recalled = append(recalled, directories[:min(len(directories), mostDirectories)]...)
	var answer []*storepb.Look
	for _, f := range recalled {
		answer = append(answer, &storepb.Look{Parent: f.key.parent, Name: []byte(f.key.name), Token: f.token, Empty: f.empty})
	}
	return answer
}

func (l *looks) nearerKnows(nearer []Process, key name) bool {
	for _, process := range nearer {
		if _, known := l.byProcess[process].names[key]; known {
			return true
		}
	}
	return false
}

// made tells whether a lock is the family's own, which may be empty for as long as it likes.
func (l *looks) made(family []Process, key name, token uint64) bool {
	return slices.ContainsFunc(family, func(process Process) bool {
		look := l.byProcess[process].names[key]
		return look.made && look.token == token
	})
}

// sawThrough notes what a thread reads or writes through a handle. Nothing seen now means that the name is
// another file's, so that a reader sees what was there before.
func (fs *fileSystem) sawThrough(h *fileHandle, thread uint32, seen []*storepb.Look, how sight) {
	if fs.family == nil {
		return
	}
	if seen = h.news(thread, seen, how, fs.looks.version.Load()); len(seen) > 0 {
		fs.saw(thread, seen, how)
		h.notedAt(fs.looks.version.Load())
	}
}

// saw notes what a thread has seen or made.
func (fs *fileSystem) saw(thread uint32, seen []*storepb.Look, how sight) {
	if fs.family != nil && len(seen) > 0 {
		fs.looks.note(fs.family(thread), seen, how)
	}
}

// listed notes that a thread lists a directory.
func (fs *fileSystem) listed(thread uint32, dir uint64) {
	if fs.family == nil || fs.looks.isEmpty() {
		return
	}
	if family := fs.family(thread); len(family) > 0 {
		fs.looks.list(family, dir)
	}
}

// tookAway notes that a thread has removed names, or moved them away.
func (fs *fileSystem) tookAway(thread uint32, names ...place) {
	if fs.family == nil || fs.looks.isEmpty() {
		return
	}
	var gone []name
	for _, at := range names {
		gone = append(gone, name{at.parent, string(at.name)})
	}
	fs.looks.forget(fs.family(thread), gone...)
}

// seenBy answers what a thread is held to if it removes or replaces one of these names.
func (fs *fileSystem) seenBy(places ...place) []*storepb.Look {
	if fs.family == nil {
		return nil
	}
	var names []name
	for _, at := range places {
		names = append(names, name{at.parent, string(at.name)})
	}
	return fs.looks.recall(fs.family(places[0].caller.GetPid()), names...)
}

// walked is a name that a thread has just looked up, and what it was: the kernel opens by inode.
type walked struct {
	ino  uint64
	seen []*storepb.Look
}

// cameBy answers the name by which a thread came to an inode, as it was when it was looked up.
func (fs *fileSystem) cameBy(thread uint32, ino uint64) []*storepb.Look {
	found, _, _ := fs.walks.take(thread, func(w walked) bool { return w.ino == ino })
	return found.seen
}
