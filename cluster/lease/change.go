package lease

import (
	"context"
	"slices"
	"time"

	"lockfs/raftstore/ids"
)

// Applied records the inodes that a command touched, before its effects can be read. It is also called after the end of leadership, because
// the reply to an earlier command may still be under way.
func (t *Table) Applied(index ids.Index, touched []ids.Inode, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now-t.lastExpiry >= Duration {
		t.expire(now)
	}
	var waits map[*holder]uint64
	for _, ino := range touched {
		for h := range t.holders[ino] {
			if waits == nil {
				waits = make(map[*holder]uint64)
			}
			waits[h] = max(waits[h], t.revoke(h, ino))
		}
	}
	if waits != nil {
		t.changes = append(t.changes, &change{index, touched, waits, make(chan struct{})})
	}
}

// Pending has changes that must not be shown yet.
type Pending []*change

// IsOver reports whether all of them may be shown.
func (p Pending) IsOver() bool {
	for _, c := range p {
		select {
		case <-c.done:
		default:
			return false
		}
	}
	return true
}

// All returns the pending changes up to an index.
func (t *Table) All(upTo ids.Index) Pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pending Pending
	for _, c := range t.changes {
		if c.index <= upTo {
			pending = append(pending, c)
		}
	}
	return pending
}

// Of returns the pending changes up to an index that touched one of the inodes.
func (t *Table) Of(upTo ids.Index, inodes []ids.Inode) Pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pending Pending
	for _, c := range t.changes {
		if c.index <= upTo && slices.ContainsFunc(c.touched, func(ino ids.Inode) bool { return slices.Contains(inodes, ino) }) {
			pending = append(pending, c)
		}
	}
	return pending
}

// deadline returns when a change may be shown in any case.
func (t *Table) deadline(c *change) (latest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h := range c.waits {
		latest = max(latest, h.until)
	}
	return latest
}

// Await waits until changes may be shown, or returns ctx's error.
func (t *Table) Await(ctx context.Context, pending Pending, now func() time.Duration) error {
	for _, c := range pending {
		for waiting := true; waiting; {
			timer := time.NewTimer(t.deadline(c) - now())
			select {
			case <-c.done:
				waiting = false
			case <-timer.C:
				t.Expire(now())
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
			timer.Stop()
		}
	}
	return nil
}
