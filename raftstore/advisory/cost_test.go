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

// TestARequestPassesManyOthers: an owner with locks waits for locks only, if too many requests are before its own. No two owners get one
// lock by that.
func TestARequestPassesManyOthers(t *testing.T) {
	p := &pile{t: t, table: New(digest.New())}
	p.waitedFor(passedRequests - 1)
	p.exclusive(1, holdingOwner, 0, 0)
	p.exclusive(1, otherOwners-1, 0, 9) // waits, and goes before the others
	p.requires(storepb.Code_WAITING, waitingOwner, 5, 5)
	p.exclusive(1, otherOwners+passedRequests, far, far)
	p.requires(storepb.Code_OK, waitingOwner, 6, 6)
	p.requires(storepb.Code_WAITING, waitingOwner, 0, 0) // a lock is in the way
	p.requires(storepb.Code_WAITING, otherOwners+passedRequests+1, 7, 7)
	p.requireSameAfterRestore(func(p *pile) { p.take(1, holdingOwner, 0, 0, storepb.LockType_UNLOCK) })
}

// TestARestoredTableLetsTheSameRequestPass: a request was compared with the earlier ones again after a later one came, and the restored table
// compares it before.
func TestARestoredTableLetsTheSameRequestPass(t *testing.T) {
	p := &pile{t: t, table: New(digest.New())}
	p.exclusive(1, holdingOwner, 0, 0)
	p.exclusive(1, holdingOwner+1, 9, 9)
	for i := range passedRequests + 2 {
		p.exclusive(1, ids.Owner(otherOwners+i), 0, 9)
	}
	last := p.seq
	p.exclusive(1, waitingOwner, far, far)
	p.requires(storepb.Code_WAITING, waitingOwner, 0, 0)
	p.exclusive(1, otherOwners+passedRequests+2, far, far) // waits for the owner of the last request
	p.seq++
	p.table.Begin(ids.Index(p.seq), 1)
	p.table.Cancel(1, last)
	p.requireSameAfterRestore(func(p *pile) { p.take(1, holdingOwner, 0, 0, storepb.LockType_UNLOCK) })
}

// requires makes a request that waits if it has to.
func (p *pile) requires(code storepb.Code, owner ids.Owner, start, end uint64) {
	p.t.Helper()
	p.seq++
	p.table.Begin(ids.Index(p.seq), 1)
	want, _ := Want(1, p.seq, budget.User{}, &storepb.TakeLock{
		Ino: 1, Kind: storepb.LockKind_RECORD, Owner: uint64(owner), Start: start, End: end, Type: storepb.LockType_EXCLUSIVE, Wait: true, ByProcess: true,
	})
	got, _ := p.table.Take(want)
	require.Equal(p.t, code, got)
	require.NoError(p.t, p.table.Check())
}

// requireSameAfterRestore gives a command to the table and to one restored from it.
func (p *pile) requireSameAfterRestore(command func(*pile)) {
	p.t.Helper()
	again := &pile{t: p.t, table: New(digest.Restoring()), seq: p.seq}
	again.table.Begin(ids.Index(p.seq), 1)
	p.table.Each(func(m *storepb.AdvisoryLock) bool {
		again.table.Restore(m, "")
		return true
	})
	require.NoError(p.t, again.table.Check())
	command(p)
	command(again)
	list := func(table *Table) []*storepb.AdvisoryLock {
		require.NoError(p.t, table.Check())
		return table.List(1, 1<<20, func(ids.Inode) bool { return true })
	}
	require.Equal(p.t, list(p.table), list(again.table))
	require.Equal(p.t, p.table.Waits(1), again.table.Waits(1))
}
