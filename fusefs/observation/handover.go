package observation

import (
	"cmp"
	"slices"
	"time"

	"lockfs/raftstore/ids"
)

// Saved is what is remembered, for the process that serves the mount next. Nobody is let off what he saw.
type Saved struct {
	Entries []SavedEntry  // as they were noted
	Clock   time.Duration // when they were saved
}

// SavedEntry is what a process saw for a user.
type SavedEntry struct {
	Process Process
	UID     uint32
	Parent  ids.Inode
	Name    []byte // empty: it listed the directory
	Token   ids.Token
	At      time.Duration // on the clock of Saved

	Directory, Made, Empty bool
}

// Save answers all of it.
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

// Restore is for a memory that is still empty.
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
}
