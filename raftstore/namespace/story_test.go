package namespace

import (
	"strings"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// story is what somebody knows who reads the audit trail and nothing else, but for where the directories
// are that were moved.
type story struct {
	ns      *Namespace
	read    uint64              // number of the last event read
	open    map[entryKey]uint64 // token of each acquisition that has not ended
	highest map[entryKey]uint64 // token that a name ever had
	counts  map[string]uint64
	dirs    map[string]uint64 // inode numbers by path, before the command
}

type entryKey struct {
	parent ids.Inode
	name   string
}

func (e *entry) key() entryKey { return entryKey{e.parent, e.name} }

func newStory(ns *Namespace) *story {
	s := &story{ns: ns, open: map[entryKey]uint64{}, highest: map[entryKey]uint64{}, counts: map[string]uint64{}}
	s.walk()
	return s
}

// walk notes where the directories are; no command moves the directory of a name that it tells of.
func (s *story) walk() {
	s.dirs = map[string]uint64{"": RootIno}
	s.ns.tree.byName.Scan(func(e *entry) bool {
		if in, found := s.ns.tree.inode(e.ino); found && in.isDir() {
			s.dirs[s.ns.tree.path(e)] = uint64(e.ino)
		}
		return true
	})
}

// follow reads what a command added, and compares the story with the tree.
func (s *story) follow(t require.TestingT) {
	for _, e := range s.ns.Events(s.read, keptEvents+1) {
		s.read++
		require.Equal(t, s.read, e.GetNumber(), "no gaps")
		require.Equal(t, s.ns.time, e.GetTime())
		s.counts[e.GetEvent()]++
		if len(e.GetPath()) > 0 {
			s.tell(t, e)
		}
	}
	require.Equal(t, s.ns.LastEvent(), s.read)
	counts := map[string]uint64{}
	s.ns.EventCounts(func(event string, count uint64) { counts[event] = count })
	require.Equal(t, s.counts, counts)
	s.compare(t)
	s.walk()
}

func (s *story) tell(t require.TestingT, e *storepb.Event) {
	dir, name := "", string(e.GetPath())
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		dir, name = name[:slash], name[slash+1:]
	}
	parent, found := s.dirs[dir]
	require.True(t, found, "%v tells of a directory", e)
	key := entryKey{ids.Inode(parent), name}
	token, isOpen := s.open[key]
	switch e.GetEvent() {
	case eventAcquired:
		require.True(t, !isOpen || token == e.GetToken(), "%v: token %d holds it", e, token)
		require.GreaterOrEqual(t, e.GetToken(), s.highest[key], "%v", e)
		s.open[key], s.highest[key] = e.GetToken(), e.GetToken()
		return
	case eventStolen:
		require.True(t, isOpen && token == e.GetPrevious().GetToken(), "%v: token %d holds it", e, token)
		require.Greater(t, e.GetToken(), token)
		require.NotEmpty(t, e.GetPreviousHash())
		delete(s.open, key)
	case eventReleased:
		require.True(t, isOpen && token == e.GetToken(), "%v: token %d holds it", e, token)
		delete(s.open, key)
	case eventRemoved:
		require.True(t, !isOpen || token == e.GetToken(), "%v: token %d holds it", e, token)
		delete(s.open, key)
	default:
		require.True(t, !isOpen || token == e.GetToken(), "%v: token %d holds it", e, token)
	}
}

// compare requires that the story is right about every name, and that no token falls.
func (s *story) compare(t require.TestingT) {
	announced := 0
	s.ns.tree.byName.Scan(func(e *entry) bool {
		require.GreaterOrEqual(t, uint64(e.token), s.highest[e.key()], "token of %q", e.name)
		s.highest[e.key()] = uint64(e.token)
		if e.announced {
			announced++
			require.Equal(t, uint64(e.token), s.open[e.key()], "story of %q", e.name)
		}
		return true
	})
	require.Len(t, s.open, announced, "acquisitions that have not ended")
}
