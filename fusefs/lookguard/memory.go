package lookguard

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

// Memory remembers which lock a process saw last under a name, by reading or making it. The cluster compares
// this at a removal or replacement: by then another lock may be there, with a live holder. See the package
// documentation.
type Memory struct {
	family   func(thread uint32) iter.Seq[Process]
	listings *thread.Notes[listing]
	version  atomic.Uint64 // counts changes

	mu        sync.Mutex
	table     *table
	log       Log    // may be nil
	unwritten []byte // bytes not yet in the log
}

// New returns an empty memory. family returns the process of a thread and its nearest ancestors in the same
// process group, nearest first; none for an invisible thread. nil disables the memory.
func New(family func(thread uint32) iter.Seq[Process]) *Memory {
	return &Memory{family: family, listings: thread.NewNotes[listing](sameThread), table: newTable()}
}

// How is the way a process observed a lock.
type How int

// Made includes writing.
const (
	Read How = iota
	Made
	MadeDirectory
)

// Saw records a thread's observations, and returns the version of the memory with them. Finding the thread's
// process takes time, so Saw skips it for data in directories without observations.
func (m *Memory) Saw(by fuse.Caller, seen []*storepb.Observation, how How) (version uint64) {
	version = m.version.Load()
	if m.family == nil || !slices.ContainsFunc(seen, func(s *storepb.Observation) bool { return !s.GetData() || m.areIn(ids.Inode(s.GetParent())) }) {
		return version
	}
	return m.note(slices.Collect(m.family(by.Pid)), by.Uid, seen, how)
}

// listing is a listing of a directory, and the version of the memory with it.
type listing struct {
	dir     ids.Inode
	version uint64
}

// sameThread is how long a thread's number identifies it: numbers return, but not so soon.
const sameThread = time.Second

// Listed records that a thread lists a directory, unless this is the last record.
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

// TookAway records that a thread has removed or moved a name.
func (m *Memory) TookAway(by fuse.Caller, gone Name) {
	if m.family != nil && m.areIn(gone.Parent) {
		m.forget(slices.Collect(m.family(by.Pid)), gone)
	}
}

// SeenBy returns the observations that guard a thread's removal or replacement of these names.
func (m *Memory) SeenBy(thread uint32, names ...Name) []*storepb.Observation {
	if m.family == nil || m.areNone() {
		return nil
	}
	return m.recall(slices.Collect(m.family(thread)), names...)
}

// IsKept reports whether the memory is enabled.
func (m *Memory) IsKept() bool { return m.family != nil }

// Version rises with each change.
func (m *Memory) Version() uint64 { return m.version.Load() }

// note records a family's observations for a user, nearest process first: a name, then its directory.
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

// forget drops the observations of a name that a family has removed or moved.
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

// areNone reports whether the memory is empty.
func (m *Memory) areNone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.isEmpty()
}

// areIn reports whether there are observations in a directory.
func (m *Memory) areIn(dir ids.Inode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.knows(dir)
}

// list records that a process has listed a directory.
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

// recall returns a family's last observations of names, and of directories which may contain them.
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

// heldTo returns the observation of the nearest process with one. held is false if the nearest process of the
// family has listed the directory since.
func (m *Memory) heldTo(family, those []Process, key Name) (seen observed, held bool) {
	for _, process := range those {
		if seen, known := m.table.last(process, key); known {
			listed, found := m.table.last(family[0], Name{Parent: key.Parent})
			return seen, !found || seen.at >= listed.at
		}
	}
	return observed{}, false
}

// made reports whether a lock is the family's own, which may stay empty.
func (m *Memory) made(family []Process, key Name, token ids.Token) bool {
	return slices.ContainsFunc(family, func(process Process) bool { return m.table.made(process, key, token) })
}

// keepSeen needs the mutex.
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

// written is called after each change. It needs the mutex.
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
