package namespace

import (
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

type modelLimits struct{ inodes, bytes, userInodes, userBytes uint64 }

func (l *modelLimits) set(op *storepb.SetLimits) {
	for _, limit := range []struct {
		at *uint64
		to uint64
	}{
		{&l.inodes, op.GetMaxInodes()}, {&l.bytes, op.GetMaxBytes()},
		{&l.userInodes, op.GetMaxInodesPerUser()}, {&l.userBytes, op.GetMaxBytesPerUser()},
	} {
		if limit.to != 0 {
			*limit.at = limit.to
		}
	}
}

// filled puts what counts where nothing was said.
func (l modelLimits) filled() modelLimits {
	if l.inodes == 0 {
		l.inodes = 4194304
	}
	if l.bytes == 0 {
		l.bytes = 268435456
	}
	if l.userInodes == 0 {
		l.userInodes = l.inodes / 2
	}
	if l.userBytes == 0 {
		l.userBytes = l.bytes / 2
	}
	return l
}

// bytes is what a node counts without its names.
func (n *node) bytes() int {
	size := 512 + len(n.content) + len(n.evidence)
	for name, value := range n.xattrs {
		size += len(name) + len(value)
	}
	return max(1024, size)
}

// names counts those of a node.
func (m *model) namesOf(n *node) (count int) {
	for _, dir := range m.nodes {
		for _, p := range dir.names {
			if p.ino == n.ino {
				count++
			}
		}
	}
	return count
}

// used counts what all have, and what a user has, but for what was removed and nobody keeps.
func (m *model) used(uid uint32) (inodes, bytes, ownInodes, ownBytes uint64) {
	for _, n := range m.nodes {
		if n.removed != nil && len(n.removed.pinned) == 0 {
			continue
		}
		size := uint64(n.bytes() + 512*m.namesOf(n))
		inodes, bytes = inodes+1, bytes+size
		if n.uid == uid {
			ownInodes, ownBytes = ownInodes+1, ownBytes+size
		}
	}
	return inodes, bytes, ownInodes, ownBytes
}

// room complains unless there is room for so much more of an owner. A name is one that is made.
func (m *model) room(cmd *storepb.Command, owner uint32, isName bool, moreInodes, moreBytes int, no *complaints) {
	limits := m.limits.filled()
	inodes, bytes, ownInodes, ownBytes := m.used(owner)
	isRoot := cmd.GetCaller().GetUid() == 0
	if !isRoot {
		limits.inodes -= limits.inodes / 64
		limits.bytes -= limits.bytes / 64
		if !isName || moreBytes > 2048 {
			limits.bytes -= limits.bytes / 16
			limits.userBytes -= limits.userBytes / 16
		}
	}
	more := func(what uint64, by int, than uint64) bool { return by > 0 && what+uint64(by) > than }
	isOver := more(ownInodes, moreInodes, limits.userInodes) || more(ownBytes, moreBytes, limits.userBytes)
	no.when(isOver && !isRoot && owner != 0, storepb.Code_QUOTA)
	no.when(more(inodes, moreInodes, limits.inodes) || more(bytes, moreBytes, limits.bytes), storepb.Code_NO_SPACE)
}

func (m *model) stats(uid uint32) *storepb.FsStats {
	limits := m.limits.filled()
	inodes, bytes, _, ownBytes := m.used(uid)
	free := func(limit, used uint64) uint64 {
		if used > limit {
			return 0
		}
		return limit - used
	}
	stats := &storepb.FsStats{
		Inodes: inodes, MaxInodes: limits.inodes, Bytes: bytes, MaxBytes: limits.bytes,
		FreeBytes: free(limits.bytes, bytes),
	}
	if uid != 0 {
		unreserved := limits.bytes - limits.bytes/64
		stats.FreeBytes = min(free(unreserved-unreserved/16, bytes), free(limits.userBytes-limits.userBytes/16, ownBytes))
	}
	return stats
}

// requireCounted counts everything anew.
func requireCounted(t require.TestingT, ns *Namespace) {
	var all usage
	users, forgotten := map[uint32]*usage{}, uint64(0)
	count := func(uid uint32, inodes, bytes uint64) {
		if users[uid] == nil {
			users[uid] = new(usage)
		}
		for _, u := range []*usage{&all, users[uid]} {
			u.inodes += inodes
			u.bytes += bytes
		}
	}
	ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		if o, found := ns.tree.orphans.byIno.Get(ino); found && !o.isPinned() {
			forgotten += uint64(in.bytes())
		} else {
			count(in.uid, 1, uint64(in.bytes()))
		}
		return true
	})
	ns.tree.byName.Scan(func(e *entry) bool {
		in, found := ns.tree.inode(e.ino)
		require.True(t, found)
		count(in.uid, 0, uint64(e.bytes()))
		return true
	})
	require.Equal(t, all, ns.tree.ledger.used)
	require.Equal(t, users, ns.tree.ledger.usedBy)
	require.Equal(t, forgotten, ns.tree.ledger.forgotten)
}
