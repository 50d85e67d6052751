package lease

import (
	"container/list"
	"context"
	"time"

	"lockfs/raftstore/ids"
)

// Applied records the inodes touched by a command, before its effects can be read. Call it also after the end
// of leadership, because the reply to an earlier command may still be in progress. It takes time in
// proportion to the leases on these inodes, each of which was granted once and is revoked once.
func (t *Table) Applied(index ids.Index, touched []ids.Inode, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	var waits map[*holder]uint64
	for _, ino := range touched {
		for h := range t.holders[ino] {
			if waits == nil {
				waits = make(map[*holder]uint64)
			}
			waits[h] = max(waits[h], t.revoke(h, ino))
		}
	}
	if waits == nil {
		return
	}
	c := &change{index: index, touched: touched, waits: len(waits), done: make(chan struct{})}
	for h, number := range waits {
		d := h.revocations[number]
		d.await = append(d.await, c)
		h.revocations[number] = d
		c.until = max(c.until, h.until)
	}
	c.enter(&t.changes)
	for _, ino := range touched {
		if t.touching[ino] == nil {
			t.touching[ino] = list.New()
		}
		c.enter(t.touching[ino])
	}
}

func (c *change) enter(in *list.List) { c.places = append(c.places, place{in, in.PushBack(c)}) }

// Pending has hidden changes up to an index: all, or those of some inodes.
type Pending struct {
	table  *Table
	upTo   ids.Index
	inodes []ids.Inode // nil: of all
}

// All returns the pending changes up to an index.
func (t *Table) All(upTo ids.Index) Pending { return Pending{table: t, upTo: upTo} }

// Of returns the pending changes of the inodes up to an index.
func (t *Table) Of(upTo ids.Index, inodes []ids.Inode) Pending {
	if inodes == nil {
		inodes = []ids.Inode{}
	}
	return Pending{t, upTo, inodes}
}

// IsOver reports whether all of them may be shown.
func (p Pending) IsOver() bool { return p.table == nil || p.first() == nil }

// first returns one pending change of them; nil: none is pending.
func (p Pending) first() *change {
	t := p.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.inodes == nil {
		return p.firstIn(&t.changes)
	}
	for _, ino := range p.inodes {
		if c := p.firstIn(t.touching[ino]); c != nil {
			return c
		}
	}
	return nil
}

func (p Pending) firstIn(changes *list.List) *change {
	if changes == nil || changes.Front() == nil {
		return nil
	}
	if c := changes.Front().Value.(*change); c.index <= p.upTo {
		return c
	}
	return nil
}

// Await waits until changes may be shown, or returns ctx's error.
func (t *Table) Await(ctx context.Context, pending Pending, now func() time.Duration) error {
	if pending.table == nil {
		return nil
	}
	for c := pending.first(); c != nil; c = pending.first() {
		timer := time.NewTimer(c.until - now())
		select {
		case <-c.done:
		case <-timer.C:
			t.Expire(now())
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
	return nil
}
