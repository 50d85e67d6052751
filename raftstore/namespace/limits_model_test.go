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
		l.userInodes = max(l.inodes/8, min(256, l.inodes/2))
	}
	if l.userBytes == 0 {
		l.userBytes = max(l.bytes/8, min(256*2048, l.bytes/2))
	}
	return l
}

// reserved is how many small locks the common reserve has room for.
func (l modelLimits) reserved() uint64 { return min(l.inodes/16, l.bytes/16/2048) }

// inReserve counts the nodes in the reserve, of all hosts and of one.
func (m *model) inReserve(host string) (all, ofHost uint64) {
	for _, n := range m.nodes {
		if n.reserve == "" || n.removed != nil && len(n.removed.pinned) == 0 {
			continue
		}
		all++
		if n.reserve == host {
			ofHost++
		}
	}
	return all, ofHost
}

// ordinary is what all have, without what is in the reserve.
func (m *model) ordinary() (inodes, bytes uint64) {
	inodes, bytes, _, _ = m.used(0)
	reserved, _ := m.inReserve("")
	return inodes - reserved, bytes - min(bytes, reserved*2048)
}

// roomForName is room for a new name of a node, which may be in the reserve then.
func (m *model) roomForName(cmd *storepb.Command, n *node, moreInodes, moreBytes int, no *complaints) {
	var refused complaints
	m.room(cmd, n.payer(), true, moreInodes, moreBytes, &refused)
	by := cmd.GetCaller()
	isSmall := moreBytes <= 2048
	if moreInodes == 0 {
		isSmall = n.bytes()+512*m.namesOf(n)+moreBytes <= 2048
	}
	_, _, inodes, bytes := m.used(n.payer())
	hasFew := inodes+uint64(moreInodes) <= 256 && bytes+uint64(moreBytes) <= 256*2048
	if len(refused) == 1 && refused[0] == storepb.Code_NO_SPACE && by.GetUid() != 0 && by.GetUid() == n.uid && isSmall && hasFew {
		reserved := m.limits.filled().reserved()
		all, ofHost := m.inReserve(by.GetHost())
		if n.reserve != "" {
			return
		}
		if all < reserved && ofHost < max(1, reserved/4) {
			n.reserve = by.GetHost()
			return
		}
	}
	*no = append(*no, refused...)
}

// payer is the user in whose budgets a node counts.
func (n *node) payer() uint32 {
	if n.budgetUID != 0 {
		return n.budgetUID
	}
	return n.uid
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
		if n.payer() == uid {
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
		inodes, bytes = m.ordinary()
		reserved := limits.reserved()
		limits.inodes -= limits.inodes/64 + reserved
		limits.bytes -= limits.bytes/64 + reserved*2048
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
		unreserved := limits.bytes - limits.bytes/64 - limits.reserved()*2048
		_, ordinary := m.ordinary()
		stats.FreeBytes = min(free(unreserved-unreserved/16, ordinary), free(limits.userBytes-limits.userBytes/16, ownBytes))
	}
	return stats
}

// requireCounted counts everything anew.
func requireCounted(t require.TestingT, ns *Namespace) {
	var all usage
	users, forgotten, reserved := map[uint32]*usage{}, uint64(0), reserve{}
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
		if _, found := ns.tree.orphans.byIno.Get(ino); found && !ns.tree.orphans.isPinned(ino) {
			forgotten += uint64(in.bytes())
		} else {
			count(in.payer(), 1, uint64(in.bytes()))
			reserved.count(in.reserve, +1)
		}
		return true
	})
	ns.tree.byName.Scan(func(e *entry) bool {
		in, found := ns.tree.inode(e.ino)
		require.True(t, found)
		count(in.payer(), 0, uint64(e.bytes()))
		return true
	})
	require.Equal(t, all, ns.tree.usage.used)
	require.Equal(t, users, ns.tree.usage.usedBy)
	require.Equal(t, reserved.used, ns.tree.usage.reserve.used)
	require.True(t, reserved.byHost.Equal(&ns.tree.usage.reserve.byHost))
	require.Equal(t, forgotten, ns.tree.usage.forgotten)
}
