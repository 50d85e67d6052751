package advisory

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// pile gives a table one command after another.
type pile struct {
	t     *testing.T
	table *Table
	seq   ids.Sequence
}

// The owners of a pile that wait for another one, that hold much, and the first of the others.
const (
	waitingOwner = 1
	holdingOwner = 2
	otherOwners  = 100
)

func (p *pile) take(ino ids.Inode, owner ids.Owner, start, end uint64, how storepb.LockType) {
	p.seq++
	p.table.Begin(ids.Index(p.seq), 1)
	want, valid := Want(1, p.seq, budget.User{}, &storepb.TakeLock{
		Ino: uint64(ino), Kind: storepb.LockKind_RECORD, Owner: uint64(owner), Start: start, End: end, Type: how, Wait: true, ByProcess: true,
	})
	require.True(p.t, valid)
	code, _ := p.table.Take(want)
	require.Contains(p.t, []storepb.Code{storepb.Code_OK, storepb.Code_WAITING}, code)
}

func (p *pile) exclusive(ino ids.Inode, owner ids.Owner, start, end uint64) {
	p.take(ino, owner, start, end, storepb.LockType_EXCLUSIVE)
}

// far is a byte that the waiting owner holds and others wait for.
const far = 1 << 20

// waitedFor makes n requests of other owners for what the waiting owner holds.
func (p *pile) waitedFor(n uint64) {
	p.exclusive(1, waitingOwner, far, far)
	for i := range n {
		p.exclusive(1, ids.Owner(otherOwners+i), far, far)
	}
}

// TestOneCommandPassesNoPileOnceForEachRequest: a command that grants n requests, or one beside n locks, allocates at most in proportion.
func TestOneCommandPassesNoPileOnceForEachRequest(t *testing.T) {
	for name, piled := range map[string]struct {
		prepare func(p *pile, n uint64)
		command func(p *pile, n uint64)
		linear  bool
	}{
		"threads of one process wait for one byte": {
			prepare: func(p *pile, n uint64) {
				p.exclusive(1, holdingOwner, 0, 0)
				p.waitedFor(n)
				for range n {
					p.exclusive(1, waitingOwner, 0, 0)
				}
			},
			command: func(p *pile, _ uint64) { p.take(1, holdingOwner, 0, 0, storepb.LockType_UNLOCK) },
			linear:  true,
		},
		"threads of one process wait for different bytes": {
			prepare: func(p *pile, n uint64) {
				p.exclusive(1, holdingOwner, 0, 2*n)
				p.waitedFor(n)
				for i := range n {
					p.exclusive(1, waitingOwner, 2*i, 2*i)
				}
			},
			command: func(p *pile, n uint64) { p.take(1, holdingOwner, 0, 2*n, storepb.LockType_UNLOCK) },
			linear:  true,
		},
		"a process waits that has locks in many files": {
			prepare: func(p *pile, n uint64) {
				for i := range n {
					p.exclusive(ids.Inode(10+i), waitingOwner, 0, 0)
				}
				p.exclusive(1, holdingOwner, 0, 0)
			},
			command: func(p *pile, _ uint64) { p.exclusive(1, waitingOwner, 0, 0) },
		},
		"threads of a process wait that has locks between those that others wait for": {
			prepare: func(p *pile, n uint64) {
				for i := range n {
					p.exclusive(1, holdingOwner, 4*i, 4*i)
					p.exclusive(1, waitingOwner, 4*i+2, 4*i+2)
					p.exclusive(1, ids.Owner(otherOwners+i), 4*i, 4*i)
				}
				p.exclusive(1, holdingOwner, far, far+2*n)
				for i := range n {
					p.exclusive(1, waitingOwner, far+2*i, far+2*i)
				}
			},
			command: func(p *pile, n uint64) { p.take(1, holdingOwner, far, far+2*n, storepb.LockType_UNLOCK) },
			linear:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocated := func(n uint64) uint64 {
				p := &pile{t: t, table: New(digest.New())}
				piled.prepare(p, n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				piled.command(p, n)
				runtime.ReadMemStats(&after)
				require.NoError(t, p.table.Check())
				return after.Mallocs - before.Mallocs
			}
			few, many := allocated(100), allocated(800)
			t.Log(few, many)
			if piled.linear {
				require.Less(t, many, 8*3*few)
			} else {
				require.Less(t, many, 3*few)
			}
		})
	}
}

// TestARequestPassesManyOthers: an owner that others wait for waits for locks only, if too many requests are before its own. No lock is shared by
// that, and a restored table grants the same.
func TestARequestPassesManyOthers(t *testing.T) {
	p := &pile{t: t, table: New(digest.New())}
	p.waitedFor(passedRequests - 1)
	p.exclusive(1, holdingOwner, 0, 0)
	p.exclusive(1, otherOwners-1, 0, 9) // waits, and goes before the others
	requires := func(granted bool, start, end uint64) {
		t.Helper()
		p.seq++
		p.table.Begin(ids.Index(p.seq), 1)
		want, _ := Want(1, p.seq, budget.User{}, &storepb.TakeLock{
			Ino: 1, Kind: storepb.LockKind_RECORD, Owner: waitingOwner, Start: start, End: end, Type: storepb.LockType_EXCLUSIVE, Wait: true, ByProcess: true,
		})
		code, _ := p.table.Take(want)
		require.Equal(t, granted, code == storepb.Code_OK)
		require.NoError(t, p.table.Check())
	}
	requires(false, 5, 5)
	p.exclusive(1, otherOwners+passedRequests, far, far)
	requires(true, 6, 6)
	requires(false, 0, 0) // a lock is in the way
	again := New(digest.Restoring())
	again.Begin(ids.Index(p.seq), 1)
	p.table.Each(func(m *storepb.AdvisoryLock) bool {
		again.Restore(m, "")
		return true
	})
	require.NoError(t, again.Check())
	for _, table := range []*Table{p.table, again} {
		table.Begin(ids.Index(p.seq+1), 1)
		want, _ := Want(1, p.seq+1, budget.User{}, &storepb.TakeLock{
			Ino: 1, Kind: storepb.LockKind_RECORD, Owner: holdingOwner, Start: 0, End: 0, Type: storepb.LockType_UNLOCK,
		})
		table.Take(want)
		require.NoError(t, table.Check())
	}
	require.Equal(t, p.table.Waits(1), again.Waits(1))
	require.Equal(t, p.table.List(1, 1<<20, func(ids.Inode) bool { return true }), again.List(1, 1<<20, func(ids.Inode) bool { return true }))
}
