package lookguard

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

// Saved is the memory for the mount's next process. All guards stay effective.
type Saved struct {
	Entries []SavedEntry  // in their order
	Clock   time.Duration // at the time of Save
}

// SavedEntry is an observation of a process for a user.
type SavedEntry struct {
	Process Process
	UID     uint32
	Parent  ids.Inode
	Name    []byte // empty: a listing of the directory
	Token   ids.Token
	At      time.Duration // on the clock of Saved

	Directory, Made, Empty bool
}

// Save returns the whole memory.
func (m *Memory) Save() *Saved {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := &Saved{Clock: m.table.now()}
	for key, l := range m.table.entries {
		saved.Entries = append(saved.Entries, SavedEntry{
			Process: key.viewer.process, UID: key.viewer.share.uid, Parent: key.name.Parent, Name: []byte(key.name.Name.Name),
			Token: l.token, At: l.at, Directory: l.directory, Made: l.made, Empty: l.empty,
		})
	}
	slices.SortFunc(saved.Entries, func(a, b SavedEntry) int { return cmp.Compare(a.At, b.At) })
	return saved
}

// Restore is for an empty memory.
func (m *Memory) Restore(saved *Saved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.began, m.table.clock = time.Now().Add(-saved.Clock), saved.Clock
	for _, e := range saved.Entries {
		m.table.note(e.Process, e.UID, Name{e.Parent, string(e.Name)}, observed{
			token: e.Token, at: e.At, directory: e.Directory, made: e.Made, empty: e.Empty,
		})
	}
	m.table.bound()
	m.version.Add(1)
	m.keepAll()
}

// KeepIn starts to write the memory to a log. Call it first.
func (m *Memory) KeepIn(log Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = log
	m.keepAll()
}

// Replay fills an empty memory from the log of another one. The log may end within a record.
func (m *Memory) Replay(log []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(log) < 8 {
		return
	}
	began := time.Duration(binary.NativeEndian.Uint64(log))
	m.table.began = time.Now().Add(began - hostinfo.BootTime())
	var r record
	size := binary.Size(r)
	for log = log[8:]; len(log) >= size; {
		_, _ = binary.Decode(log, binary.NativeEndian, &r)
		if log = log[size:]; len(log) < int(r.Length) {
			break
		}
		process, key := Process{int(r.PID), r.Start}, Name{r.Parent, string(log[:r.Length])}
		log = log[r.Length:]
		if r.What == forgot {
			m.table.forget(process, key)
			continue
		}
		m.table.clock = max(m.table.clock, r.At)
		m.table.note(process, r.UID, key, observed{
			token: r.Token, at: r.At, directory: r.Seen&isDirectory != 0, made: r.Seen&isMade != 0, empty: r.Seen&isEmpty != 0,
		})
	}
	m.table.bound()
	m.version.Add(1)
	m.keepAll()
}
