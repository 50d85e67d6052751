package advisory

import (
	"cmp"
	"testing"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/test/costs"
)

// caller gives commands to a table, each with a number of its own.
type caller struct {
	t     testing.TB
	table *Table
	seq   ids.Sequence
	uid   uint32 // of all requests; 0: none
}

// ask makes a request of an owner for the bytes from start to end, in one file of one session for each owner. Each request has a user
// of its own, unless all have one.
func (c *caller) ask(want storepb.Code, owner, start, end uint64, to storepb.LockType, wait bool) {
	c.seq++
	c.table.Begin(ids.Index(c.seq), int64(c.seq))
	asked, valid := Want(ids.Session(owner), c.seq, budget.User{Host: "host", UID: cmp.Or(c.uid, uint32(c.seq))}, &storepb.TakeLock{
		Ino: 1, Kind: storepb.LockKind_RECORD, Type: to, Owner: owner, Start: start, End: end, Wait: wait, ByProcess: true,
	})
	if got, _ := c.table.Take(asked); !valid || got != want {
		c.t.Fatalf("owner %d: %v, not %v", owner, got, want)
	}
}

func (c *caller) take(owner, start, end uint64) {
	c.ask(storepb.Code_OK, owner, start, end, storepb.LockType_EXCLUSIVE, false)
}

func (c *caller) share(owner, start, end uint64) {
	c.ask(storepb.Code_OK, owner, start, end, storepb.LockType_SHARED, false)
}

func (c *caller) release(owner, start, end uint64) {
	c.ask(storepb.Code_OK, owner, start, end, storepb.LockType_UNLOCK, false)
}

func (c *caller) wait(owner, start, end uint64) {
	c.ask(storepb.Code_WAITING, owner, start, end, storepb.LockType_EXCLUSIVE, true)
}

func (c *caller) waitToShare(owner, start, end uint64) {
	c.ask(storepb.Code_WAITING, owner, start, end, storepb.LockType_SHARED, true)
}

// Owners beside those of what was piled up, and bytes behind it.
const (
	ann  = 1 << 40
	bob  = ann + 1
	free = 1 << 30
)

// costs are commands, each beside so much of one thing that a user can pile up.
var costTable = []struct {
	name   string
	pileUp func(c *caller, n uint64)
	do     func(c *caller, n, i uint64)
}{
	{"locks of others",
		func(c *caller, n uint64) { each(n, func(i uint64) { c.take(i+1, 2*i, 2*i) }) },
		func(c *caller, n, _ uint64) { c.take(ann, n|1, n|1); c.release(ann, n|1, n|1) }},
	{"locks of the owner",
		func(c *caller, n uint64) { each(n, func(i uint64) { c.take(ann, 2*i, 2*i) }) },
		func(c *caller, n, _ uint64) { c.take(ann, n|1, n|1); c.release(ann, n|1, n|1); c.take(ann, n&^1, n&^1) }},
	{"locks of the owner, in the way of a request",
		func(c *caller, n uint64) { each(n, func(i uint64) { c.take(ann, 2*i, 2*i) }); c.take(bob, free, free) },
		func(c *caller, _, _ uint64) {
			c.ask(storepb.Code_WOULD_BLOCK, ann, 0, lastByte, storepb.LockType_EXCLUSIVE, false)
		}},
	{"readers",
		func(c *caller, n uint64) { each(n, func(i uint64) { c.share(i+1, 0, lastByte) }) },
		func(c *caller, _, _ uint64) {
			c.share(ann, 0, 9)
			c.ask(storepb.Code_WOULD_BLOCK, ann, 5, 5, storepb.LockType_EXCLUSIVE, false)
			c.release(ann, 0, 9)
		}},
	{"writers that wait for a byte, and its holder lets go",
		func(c *caller, n uint64) { c.take(n+1, 0, 0); each(n, func(i uint64) { c.wait(i+1, 0, 0) }) },
		func(c *caller, n, i uint64) {
			holder := (n+i)%(n+1) + 1
			c.release(holder, 0, 0)
			c.wait(holder, 0, 0)
		}},
	{"writers that hold a byte each and wait for another one, and its holder lets go",
		func(c *caller, n uint64) {
			each(n+1, func(i uint64) { c.take(i+1, free+2*i, free+2*i) })
			c.take(n+1, 0, 0)
			each(n, func(i uint64) { c.wait(i+1, 0, 0) })
		},
		func(c *caller, n, i uint64) {
			holder := (n+i)%(n+1) + 1
			c.release(holder, 0, 0)
			c.wait(holder, 0, 0)
		}},
	{"writers that hold a byte each for which others wait, and wait for another one, and its holder lets go",
		func(c *caller, n uint64) {
			each(n+1, func(i uint64) { c.take(i+1, free+2*i, free+2*i) })
			each(n+1, func(i uint64) { c.wait(ann+i, free+2*i, free+2*i) })
			c.take(n+1, 0, 0)
			each(n, func(i uint64) { c.wait(i+1, 0, 0) })
		},
		func(c *caller, n, i uint64) {
			holder := (n+i)%(n+1) + 1
			c.release(holder, 0, 0)
			c.wait(holder, 0, 0)
		}},
	{"readers that wait behind a writer, and another writer gives up",
		func(c *caller, n uint64) {
			c.take(ann, 0, 9)
			each(n, func(i uint64) { c.waitToShare(i+1, 0, 9) })
		},
		func(c *caller, _, _ uint64) {
			c.wait(bob, 0, 9)
			c.table.Cancel(ids.Session(bob), c.seq)
		}},
	{"requests for other bytes",
		func(c *caller, n uint64) { c.take(ann, 0, n); each(n, func(i uint64) { c.wait(i+1, i, i) }) },
		func(c *caller, _, _ uint64) { c.take(bob, free, free); c.release(bob, free, free) }},
	{"locks and requests for them",
		func(c *caller, n uint64) {
			each(n, func(i uint64) { c.take(ann, 2*i, 2*i) })
			each(n, func(i uint64) { c.wait(i+1, 2*i, 2*i) })
		},
		func(c *caller, _, _ uint64) { c.take(bob, free, free); c.release(bob, free, free) }},
	{"requests for bytes that two share, of whom one comes and goes",
		func(c *caller, n uint64) {
			c.share(ann, 0, n)
			c.share(bob, 0, n)
			each(n, func(i uint64) { c.wait(i+1, i, i) })
		},
		func(c *caller, n, _ uint64) { c.release(ann, 0, n); c.share(ann, 0, n) }},
	{"requests for a lock of a process that waits itself",
		func(c *caller, n uint64) {
			c.take(ann, 0, 0)
			c.take(bob, free, free)
			each(n, func(i uint64) { c.wait(i+1, 0, 0) })
		},
		func(c *caller, _, _ uint64) {
			c.wait(ann, free, free)
			c.table.Cancel(ids.Session(ann), c.seq)
		}},
	{"requests of the owner, which takes and releases another byte",
		func(c *caller, n uint64) {
			c.take(ann, 0, n)
			c.take(bob, free, free)
			each(n, func(i uint64) { c.wait(bob, i, i) })
		},
		func(c *caller, n, _ uint64) { c.take(bob, free+2, free+2); c.release(bob, free+2, free+2) }},
	{"requests of one that shares a byte with two others, of whom one lets go",
		func(c *caller, n uint64) {
			c.take(ann, 0, n)
			c.share(bob, free, lastByte)
			each(n, func(i uint64) { c.wait(bob, i, i) })
		},
		func(c *caller, n, i uint64) {
			c.share(ann+2, free+i, free+i)
			c.wait(ann+3, free+i, free+i)
			c.release(ann+2, free+i, free+i)
			c.table.Cancel(ids.Session(ann+3), c.seq)
		}},
	{"requests for what a waiter holds, and an earlier request gives up",
		func(c *caller, n uint64) {
			c.take(bob, free, free)
			c.take(ann, 0, 0)
			each(n, func(i uint64) { c.wait(i+1, free, free) })
		},
		func(c *caller, _, _ uint64) {
			c.wait(ann+2, 0, 9)
			earlier := c.seq
			c.seq++
			c.table.Begin(ids.Index(c.seq), int64(c.seq))
			want, _ := Want(bob, c.seq, budget.User{}, &storepb.TakeLock{
				Ino: 1, Kind: storepb.LockKind_RECORD, Type: storepb.LockType_EXCLUSIVE, Owner: bob, Start: 5, End: 9, Wait: true, ByProcess: true,
			})
			c.table.Take(want) // it passes the earlier request if there are many others
			c.table.Cancel(ids.Session(ann+2), earlier)
			c.release(bob, 5, 9)
		}},
	{"one user's readers of different ranges with two reasons to wait, which end in turn",
		func(c *caller, n uint64) {
			c.uid = 1000
			c.take(ann, 0, n-1)
			c.take(bob, n, n)
			each(min(n, MostRanges), func(i uint64) { c.waitToShare(i+1, i, n) })
			each(n, func(i uint64) { c.waitToShare(i+1, 0, n) })
		},
		func(c *caller, n, _ uint64) {
			c.release(ann, 0, n-1)
			c.take(ann, 0, n-1)
			c.release(bob, n, n)
			c.take(bob, n, n)
		}},
	{"sessions with a lock, of which one ends",
		func(c *caller, n uint64) { each(n, func(i uint64) { c.take(i+1, 2*i, 2*i) }) },
		func(c *caller, _, _ uint64) {
			c.take(ann, free, free)
			c.table.DropAll(ann, 0)
		}},
}

func each(n uint64, do func(i uint64)) {
	for i := range n {
		do(i)
	}
}

// TestCostsDoNotGrow measures each command beside 1,000 things and beside many more.
func TestCostsDoNotGrow(t *testing.T) {
	for _, row := range costTable {
		t.Run(row.name, func(t *testing.T) {
			costs.RequireBounded(t, 50, func(pile int) func() {
				c := &caller{t: t, table: New(digest.Restoring())}
				n, i := uint64(pile), uint64(0)
				row.pileUp(c, n)
				return func() { row.do(c, n, i); i++ }
			})
		})
	}
}
