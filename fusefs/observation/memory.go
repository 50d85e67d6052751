package observation

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/thread"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Memory remembers which lock a process saw last under a name, when it read or made it. If it removes or
// replaces that name later, the cluster compares: breaking a stale lock is to look, to judge and to remove,
// and by then it may be another lock, whose holder is alive.
//
// What a process sees, its ancestors in the same process group see too: a script looks with one command
// and removes with another. A removal is held to what the nearest of them saw. It is a judgement, not a memory: who sees that
// a name is data has forgotten it, and so has who removed it; a process that lists a directory itself (rm -rf, find -delete)
// removes what it found there, whatever its ancestors saw before.
type Memory struct {
	family   func(thread uint32) iter.Seq[Process]
	listings *thread.Notes[listing]
	version  atomic.Uint64 // counts the notes

	mu        sync.Mutex
	table     *table
	log       Log    // may be nil
	unwritten []byte // in it
}

// New remembers nothing yet. family answers the process that a thread belongs to, and its nearest ancestors in the same process
// group, nearest first; none if the thread cannot be seen. Without it nothing is remembered, and nobody held to anything.
func New(family func(thread uint32) iter.Seq[Process]) *Memory {
	return &Memory{family: family, listings: thread.NewNotes[listing](sameThread), table: newTable()}
}

// How a process came to see a lock.
type How int

// What a process wrote to it made, as far as this goes.
const (
	Read How = iota
	Made
	MadeDirectory
)

// Saw notes what a thread has seen or made. To find out who the thread is takes some time, and so is spared if there is
// nothing to forget of what is data. It answers the version of the memory with which that is noted.
func (m *Memory) Saw(by fuse.Caller, seen []*storepb.Observation, how How) (version uint64) {
	version = m.version.Load()
	if m.family == nil || !slices.ContainsFunc(seen, func(s *storepb.Observation) bool { return !s.GetData() || m.areIn(ids.Inode(s.GetParent())) }) {
		return version
	}
	return m.note(slices.Collect(m.family(by.Pid)), by.Uid, seen, how)
}

// listing is that of a directory, and the version of the memory with which it was noted.
type listing struct {
	dir     ids.Inode
	version uint64
}

// sameThread is for how long the number of a thread is taken to be its own: it comes back, but not so soon.
const sameThread = time.Second

// Listed notes that a thread lists a directory, unless that is the last thing that was noted.
func (m *Memory) Listed(by fuse.Caller, dir ids.Inode) {
	if m.family == nil || !m.areIn(dir) {
		return
	}
	last, age, found := m.listings.Get(by.Pid)
	if found && last == (listing{dir, m.version.Load()}) && age < sameThread {
		return
	}
	for process := range m.family(by.Pid) {
		m.listings.Note(by.Pid, listing{dir, m.list(process, by.Uid, dir)})
		return
	}
}

// TookAway notes that a thread has removed a name, or moved it away.
func (m *Memory) TookAway(by fuse.Caller, gone Name) {
	if m.family != nil && m.areIn(gone.Parent) {
		m.forget(slices.Collect(m.family(by.Pid)), gone)
	}
}

// SeenBy answers what a thread is held to if it removes or replaces one of these names.
func (m *Memory) SeenBy(thread uint32, names ...Name) []*storepb.Observation {
	if m.family == nil || m.areNone() {
		return nil
	}
	return m.recall(slices.Collect(m.family(thread)), names...)
}

// IsKept is false if nothing is remembered.
func (m *Memory) IsKept() bool { return m.family != nil }

// Version rises whenever something else may be known than before.
func (m *Memory) Version() uint64 { return m.version.Load() }

// note remembers what a family, nearest first, has seen at the request of a user: a name, and then the directory it is in.
func (m *Memory) note(family []Process, uid uint32, locks []*storepb.Observation, how How) (version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.table.now()
	for i, lock := range locks {
		key := Name{ids.Inode(lock.GetParent()), string(lock.GetName())}
		for _, process := range family {
			if lock.GetData() {
				m.table.forget(process, key)
				m.keepForgotten(process, key)
				continue
			}
			seen := observed{
				token: ids.Token(lock.GetToken()), at: at, directory: i > 0 || how == MadeDirectory, made: how != Read, empty: lock.GetEmpty(),
			}
			m.table.note(process, uid, key, seen)
			m.keepSeen(process, uid, key, seen)
		}
	}
	m.written()
	m.table.bound()
	return m.version.Add(1)
}

// forget is for a name that a family has removed or moved away.
func (m *Memory) forget(family []Process, gone Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version.Add(1)
	for _, process := range family {
		m.table.forget(process, gone)
		m.keepForgotten(process, gone)
	}
	m.written()
}

// areNone tells that there is nothing to be held to.
func (m *Memory) areNone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.isEmpty()
}

// areIn tells whether anybody has seen something in a directory.
func (m *Memory) areIn(dir ids.Inode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.knows(dir)
}

// list notes that a process has listed a directory.
func (m *Memory) list(process Process, uid uint32, dir ids.Inode) (version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, seen := Name{Parent: dir}, observed{at: m.table.now()}
	m.table.note(process, uid, key, seen)
	m.keepSeen(process, uid, key, seen)
	m.written()
	m.table.bound()
	return m.version.Add(1)
}

// recall answers what a family saw last of some names, and of directories that these may be in.
func (m *Memory) recall(family []Process, wanted ...Name) []*storepb.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(family) == 0 {
		return nil
	}
	var answer []*storepb.Observation
	add := func(key Name, seen observed) {
		answer = append(answer, &storepb.Observation{Parent: uint64(key.Parent), Name: []byte(key.Name), Token: uint64(seen.token), Empty: seen.empty})
	}
	for _, key := range wanted {
		if seen, held := m.heldTo(family, family, key); held {
			seen.empty = seen.empty && !m.made(family, key, seen.token)
			add(key, seen)
		}
	}
	directories := make(map[Name]observed)
	passed := make(map[Name]bool)
	for i, process := range family {
		for _, key := range m.table.directories(process) {
			if passed[key] || slices.Contains(wanted, key) {
				continue
			}
			passed[key] = true
			if seen, held := m.heldTo(family, family[i:], key); held && seen.directory {
				directories[key] = seen
			}
		}
	}
	last := slices.SortedFunc(maps.Keys(directories), func(a, b Name) int {
		return cmp.Compare(directories[b].at, directories[a].at)
	})
	for _, key := range last[:min(len(last), mostDirectories)] {
		add(key, directories[key])
	}
	return answer
}

// heldTo answers what the nearest of those of a family that know a name saw of it, unless the family's nearest of all has
// listed the directory since.
func (m *Memory) heldTo(family, those []Process, key Name) (seen observed, held bool) {
	for _, process := range those {
		if seen, known := m.table.last(process, key); known {
			listed, found := m.table.last(family[0], Name{Parent: key.Parent})
			return seen, !found || seen.at >= listed.at
		}
	}
	return observed{}, false
}

// made tells whether a lock is the family's own, which may be empty for as long as it likes.
func (m *Memory) made(family []Process, key Name, token ids.Token) bool {
	return slices.ContainsFunc(family, func(process Process) bool { return m.table.made(process, key, token) })
}

// keepSeen is called with the mutex held.
func (m *Memory) keepSeen(process Process, uid uint32, key Name, seen observed) {
	if m.log != nil {
		m.unwritten = appendSeen(m.unwritten, process, uid, key, seen)
	}
}

func (m *Memory) keepForgotten(process Process, key Name) {
	if m.log != nil {
		m.unwritten = appendRecord(m.unwritten, record{What: forgot, PID: int64(process.PID), Start: process.Start}, key)
	}
}

// written is called with the mutex held, after each change.
func (m *Memory) written() {
	if len(m.unwritten) > 0 && !m.log.Append(m.unwritten) {
		m.keepAll()
	}
	m.unwritten = m.unwritten[:0]
}

func (m *Memory) keepAll() {
	if m.log == nil {
		return
	}
	text := binary.NativeEndian.AppendUint64(nil, uint64(hostinfo.BootTime()-time.Since(m.table.began)))
	for _, e := range m.table.sorted() {
		text = appendSeen(text, e.viewer.process, e.viewer.share.uid, e.name.Name, e.observed)
	}
	m.log.Replace(text)
}
