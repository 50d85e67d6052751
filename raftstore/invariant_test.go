package raftstore

import (
	"github.com/stretchr/testify/require"
)

// requireConsistent checks what must hold inside every namespace.
func requireConsistent(t require.TestingT, ns *Namespace) {
	names, subdirs, cookies := map[uint64]uint32{}, map[uint64]uint32{}, map[[2]uint64]bool{}
	require.Equal(t, ns.byName.Len(), ns.byCookie.Len(), "as many entries by name as by cookie")
	ns.byName.Scan(func(e *entry) bool {
		same, found := ns.byCookie.Get(e)
		require.True(t, found && same == e, "entry %q is found by its cookie", e.name)
		require.True(t, e.cookie > cookieParent && e.cookie < ns.nextCookie, "cookie %d of %q", e.cookie, e.name)
		require.False(t, cookies[[2]uint64{e.parent, e.cookie}], "cookie of %q is its own", e.name)
		cookies[[2]uint64{e.parent, e.cookie}] = true
		dir, found := ns.inodes.Get(e.parent)
		require.True(t, found && dir.isDir() && dir.nlink > 0, "entry %q is in a directory", e.name)
		in, found := ns.inodes.Get(e.ino)
		require.True(t, found, "entry %q has an inode", e.name)
		names[e.ino]++
		if in.isDir() {
			require.Equal(t, e.parent, in.parent, "directory %q knows its parent", e.name)
			subdirs[e.parent]++
		}
		return true
	})
	bytes := uint64(0)
	ns.inodes.Scan(func(ino uint64, in *inode) bool {
		bytes += uint64(len(in.content))
		require.True(t, ino == in.ino && ino < ns.nextIno, "number of inode %d", ino)
		_, orphaned := ns.orphans.Get(ino)
		switch {
		case orphaned:
			require.Zero(t, in.nlink, "inode %d has no name", ino)
			require.Zero(t, names[ino])
		case in.isDir():
			require.Equal(t, 2+subdirs[ino], in.nlink, "links of directory %d", ino)
			requireBelowRoot(t, ns, in)
			require.Equal(t, ino != RootIno, names[ino] == 1)
		default:
			require.Equal(t, names[ino], in.nlink, "links of inode %d", ino)
			require.NotZero(t, in.nlink, "inode %d is an orphan", ino)
		}
		return true
	})
	require.Equal(t, bytes, ns.contentBytes)
	requireOrphansConsistent(t, ns)
	requireRepliesConsistent(t, ns)
}

func requireBelowRoot(t require.TestingT, ns *Namespace, dir *inode) {
	for steps := 0; dir.ino != RootIno; steps++ {
		require.LessOrEqual(t, steps, MaxDepth, "directory %d is below the root", dir.ino)
		above, found := ns.inodes.Get(dir.parent)
		require.True(t, found)
		dir = above
	}
}

func requireOrphansConsistent(t require.TestingT, ns *Namespace) {
	expiring := 0
	ns.orphans.Scan(func(ino uint64, o *orphan) bool {
		_, found := ns.inodes.Get(ino)
		require.True(t, found, "orphan %d has an inode", ino)
		if !o.pinned {
			expiring++
			at, found := ns.expiring.Get(o.removedIndex)
			require.True(t, found && at == ino, "orphan %d expires", ino)
		}
		return true
	})
	require.Equal(t, expiring, ns.expiring.Len())
}

func requireRepliesConsistent(t require.TestingT, ns *Namespace) {
	counts := map[uint64]int{}
	ns.replies.Scan(func(r *reply) bool {
		s, found := ns.sessions.Get(r.session)
		require.True(t, found, "reply %d has a session", r.seq)
		require.True(t, r.seq > s.acked && r.result != nil, "reply %d is waited for", r.seq)
		counts[r.session]++
		return true
	})
	ended := 0
	ns.sessions.Scan(func(id uint64, s *session) bool {
		if s.endedIndex != 0 {
			ended++
			at, found := ns.endedSessions.Get(s.endedIndex)
			require.True(t, found && at == id, "ended session %d expires", id)
		}
		require.Equal(t, counts[id], s.replies, "replies of session %d", id)
		return true
	})
	require.Equal(t, ended, ns.endedSessions.Len())
}
