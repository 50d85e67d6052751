package lease

import (
	"testing"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/test/costs"
)

// costDriver has mounts take leases and commands change inodes.
type costDriver struct {
	t     *testing.T
	table *Table
	index ids.Index
	now   time.Duration
}

// take has a mount take a lease on an inode.
func (d *costDriver) take(session ids.Session, ino ids.Inode) (generation uint64) {
	generation, ok := d.table.Grant(Request{Holder: Holder{Session: session}}, []ids.Inode{ino}, d.now)
	if !ok {
		d.t.Fatalf("session %d gets no lease on inode %d", session, ino)
	}
	return generation
}

// change has a command change an inode.
func (d *costDriver) change(ino ids.Inode) {
	d.index++
	d.table.RevokeAhead([]ids.Inode{ino})()
	d.table.Applied(d.index, []ids.Inode{ino}, d.now)
}

// use has a mount take a lease, keep it, and drop what a command changes.
func (d *costDriver) use(session ids.Session, ino ids.Inode) {
	of := Holder{Session: session}
	generation := d.take(session, ino)
	d.table.Extend(of, generation, d.now)
	d.change(ino)
	pending := d.table.Of(d.index, []ids.Inode{ino})
	inodes, number, _, known := d.table.Revocations(of, generation)
	if pending.IsOver() || d.table.All(d.index).IsOver() || !known || len(inodes) != 1 {
		d.t.Fatalf("session %d is asked to drop %v", session, inodes)
	}
	d.table.Acknowledge(of, generation, number)
	if !pending.IsOver() {
		d.t.Fatal("the change is still pending")
	}
}

// Mounts and inodes beside those of what was piled up.
const (
	ann  = 1 << 40
	bob  = ann + 1
	free = 1 << 40
)

// costTable are uses of a lease, each beside so much of one thing that users can pile up.
var costTable = []struct {
	name   string
	pileUp func(d *costDriver, n int)
}{
	{"leases of other mounts", func(d *costDriver, n int) {
		for i := range n {
			d.take(ids.Session(i+1), ids.Inode(i+1))
		}
	}},
	{"leases of other mounts on one inode", func(d *costDriver, n int) {
		for i := range n {
			d.take(ids.Session(i+1), 1)
		}
	}},
	{"leases of the mount", func(d *costDriver, n int) {
		for i := range min(n, maxHeld-1) {
			d.take(ann, ids.Inode(i+1))
		}
	}},
	{"changes that wait for mounts which do not answer", func(d *costDriver, n int) {
		for i := range n {
			d.take(ids.Session(i/1000+1), ids.Inode(i+1))
		}
		for i := range n {
			d.change(ids.Inode(i + 1))
		}
	}},
	{"changes of one inode that wait for a mount which does not answer", func(d *costDriver, n int) {
		d.take(bob, 1)
		for range n {
			d.change(1)
		}
	}},
	{"mounts that did not answer", func(d *costDriver, n int) {
		for i := range n {
			d.take(ids.Session(i+1), ids.Inode(i+1))
			d.change(ids.Inode(i + 1))
		}
		d.now += Duration
		d.table.Expire(d.now)
	}},
}

// TestCostsDoNotGrow measures each row beside 1,000 things and beside many more.
func TestCostsDoNotGrow(t *testing.T) {
	for _, row := range costTable {
		t.Run(row.name, func(t *testing.T) {
			costs.RequireBounded(t, 50, func(pile int) func() {
				d := &costDriver{t: t, table: NewTable()}
				d.table.Begin(1)
				row.pileUp(d, pile)
				return func() { d.use(ann, free) }
			})
		})
	}
}
