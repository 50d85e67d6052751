package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestDeadlock(t *testing.T) {
	t.Run("of two", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
		tr.processWait(bert, exclusive, 0, 0).is(storepb.Code_DEADLOCK)
		tr.requireLocks("anna has 0-0", "bert has 1-1", "anna waits for 1-1")
		tr.record(bert, nothing, 1, 1).ok()
		tr.requireLocks("anna has 0-1")
	})
	t.Run("of upgrades", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.record(bert, shared, 0, 9).ok()
		tr.processWait(anna, exclusive, 0, 9).is(storepb.Code_WAITING)
		tr.processWait(bert, exclusive, 0, 9).is(storepb.Code_DEADLOCK)
		tr.requireLocks("anna shares 0-9", "bert shares 0-9", "anna waits for 0-9")
	})
	t.Run("of many, in several files", func(t *testing.T) {
		tr := newLockTree(t)
		all := []who{anna, bert, cleo, dora}
		for i, w := range all {
			file := tr.take(here, nameOf(i), nil)
			tr.ask(w, &storepb.TakeLock{Ino: file, Kind: storepb.LockKind_RECORD, Type: exclusive}).ok()
		}
		for i, w := range all {
			next := tr.at(RootIno, nameOf((i+1)%len(all)))
			code := storepb.Code_WAITING
			if i == len(all)-1 {
				code = storepb.Code_DEADLOCK
			}
			tr.ask(w, &storepb.TakeLock{Ino: next, Kind: storepb.LockKind_RECORD, Type: exclusive, Wait: true, ByProcess: true}).is(code)
		}
	})
	t.Run("through the queue", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 0).ok()
		tr.record(bert, exclusive, 9, 9).ok()
		tr.processWait(cleo, exclusive, 0, 0).is(storepb.Code_WAITING)
		tr.processWait(bert, shared, 0, 0).is(storepb.Code_WAITING) // only cleo is in the way
		tr.processWait(anna, exclusive, 9, 9).is(storepb.Code_DEADLOCK)
		tr.requireLocks("anna shares 0-0", "bert has 9-9", "cleo waits for 0-0", "bert waits to share 0-0")
	})
	t.Run("by a call that takes its place again", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(bert, exclusive, 0, 0).ok()
		tr.record(cleo, exclusive, 20, 20).ok()
		tr.record(dora, exclusive, 2, 2).ok()
		tr.processWait(anna, exclusive, 0, 2).is(storepb.Code_WAITING)
		interrupted := tr.seqs[here]
		tr.do(here, opOf(&storepb.InterruptLock{Seq: interrupted, Ino: tr.ino})).is(storepb.Code_WAITING)
		tr.wait(-2 * time.Second) // all in no time
		tr.processWait(cleo, exclusive, 2, 2).is(storepb.Code_WAITING)
		tr.processWait(bert, exclusive, 20, 20).is(storepb.Code_WAITING)
		tr.processWait(anna, exclusive, 0, 2).is(storepb.Code_DEADLOCK) // cleo would wait for it
		tr.requireLocks("cleo has 20-20", "bert has 0-0", "dora has 2-2", "cleo waits for 2-2", "bert waits for 20-20")
	})
}

// TestNoDeadlock: whoever may go on in another way is no part of a deadlock.
func TestNoDeadlock(t *testing.T) {
	// almost is what would be a deadlock if the second of its calls had no effect on it.
	almost := func(t *testing.T, wait func(tr *lockTree)) *lockTree {
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		wait(tr)
		tr.processWait(bert, exclusive, 0, 0).is(storepb.Code_WAITING)
		return tr
	}
	t.Run("an open file description", func(t *testing.T) {
		almost(t, func(tr *lockTree) { tr.recordWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING) })
	})
	t.Run("the caller is one", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
		tr.recordWait(bert, exclusive, 0, 0).is(storepb.Code_WAITING)
	})
	t.Run("interrupted", func(t *testing.T) {
		almost(t, func(tr *lockTree) {
			tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
			tr.do(here, opOf(&storepb.InterruptLock{Seq: tr.seqs[here], Ino: tr.ino})).is(storepb.Code_WAITING)
		})
	})
	t.Run("several threads wait", func(t *testing.T) {
		tr := almost(t, func(tr *lockTree) {
			tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
			tr.record(dora, exclusive, 30, 30).ok()
			tr.processWait(anna, exclusive, 30, 30).is(storepb.Code_WAITING)
		})
		tr.record(dora, nothing, 30, 30).ok() // now that thread can release what bert waits for
		tr.record(anna, nothing, 0, 0).ok()
		tr.requireLocks("anna has 30-30", "bert has 0-1", "anna waits for 1-1")
	})
	t.Run("another thread of the caller waits", func(t *testing.T) {
		almost(t, func(tr *lockTree) {
			tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
			tr.record(dora, exclusive, 30, 30).ok()
			tr.processWait(bert, exclusive, 30, 30).is(storepb.Code_WAITING)
		})
	})
	t.Run("no more", func(t *testing.T) {
		tr := almost(t, func(tr *lockTree) {
			tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
			tr.record(bert, nothing, 1, 1).ok()
		})
		tr.requireLocks("anna has 0-1", "bert waits for 0-0")
	})
	t.Run("a session that ended", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		tr.giveUp(here)
		tr.processWait(bert, exclusive, 0, 0).is(storepb.Code_WAITING)
	})
	t.Run("a chain", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		tr.record(cleo, exclusive, 2, 2).ok()
		tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
		tr.processWait(bert, exclusive, 2, 2).is(storepb.Code_WAITING)
		tr.processWait(dora, exclusive, 0, 2).is(storepb.Code_WAITING)
	})
	t.Run("a cycle of others", func(t *testing.T) { // which the threads of one of them can end
		tr := newLockTree(t)
		tr.record(anna, exclusive, 0, 0).ok()
		tr.record(bert, exclusive, 1, 1).ok()
		tr.recordWait(anna, exclusive, 1, 1).is(storepb.Code_WAITING)
		tr.processWait(bert, exclusive, 0, 0).is(storepb.Code_WAITING)
		tr.processWait(dora, exclusive, 0, 0).is(storepb.Code_WAITING)
	})
	t.Run("flock", func(t *testing.T) {
		tr := newLockTree(t)
		other := tr.take(here, "other", nil)
		tr.flock(anna, exclusive).ok()
		tr.ask(bert, &storepb.TakeLock{Ino: other, Type: exclusive}).ok()
		tr.ask(anna, &storepb.TakeLock{Ino: other, Type: exclusive, Wait: true, ByProcess: true}).is(storepb.Code_WAITING)
		tr.ask(bert, &storepb.TakeLock{Type: exclusive, Wait: true, ByProcess: true}).is(storepb.Code_WAITING)
		require.Equal(t, 2, len(requestsIn(tr.ns)))
	})
}
