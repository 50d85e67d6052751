package raftstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestTakeBackLock cancels the last call of anna after some calls of hers and of others.
func TestTakeBackLock(t *testing.T) {
	const waiting = storepb.Code_WAITING
	for name, test := range map[string]struct {
		do    func(tr *lockTree)                   // its last call of anna's host is the one that is cancelled
		after func(tr *lockTree, cancelled uint64) // what happens before that
		want  []string
	}{
		"granted": {do: func(tr *lockTree) { tr.flock(anna, exclusive).ok() }},
		"granted, and somebody waits": {
			do:    func(tr *lockTree) { tr.flock(anna, exclusive).ok() },
			after: func(tr *lockTree, _ uint64) { tr.flockWait(bert, shared).is(waiting) },
			want:  []string{"bert shares"},
		},
		"queued": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) { tr.flockWait(dora, shared).is(waiting) },
			want:  []string{"bert shares", "dora shares"},
		},
		"granted later": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) { tr.flock(bert, nothing).ok() },
		},
		"interrupted": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			after: func(tr *lockTree, cancelled uint64) { tr.interrupt(anna, cancelled).is(waiting) },
			want:  []string{"bert shares"},
		},
		"converted": {
			do: func(tr *lockTree) {
				tr.flock(anna, shared).ok()
				tr.flock(anna, exclusive).ok()
			},
			want: []string{"anna shares"},
		},
		"converted later": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flock(anna, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) { tr.flock(bert, nothing).ok() },
			want:  []string{"anna shares"},
		},
		"not converted yet": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flock(anna, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			want: []string{"anna shares", "bert shares"},
		},
		"not converted, and lost": {
			do: func(tr *lockTree) {
				tr.flock(anna, shared).ok()
				tr.flockWait(bert, exclusive).is(waiting)
				tr.flockWait(anna, exclusive).is(waiting)
			},
			want: []string{"bert has"},
		},
		"not converted, and closed": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flock(anna, shared).ok()
				tr.flockWait(anna, exclusive).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) { tr.close(storepb.LockKind_FLOCK, anna) },
			want:  []string{"bert shares"},
		},
		"conversion refused": {
			do: func(tr *lockTree) {
				tr.flock(bert, shared).ok()
				tr.flock(anna, shared).ok()
				tr.flock(anna, exclusive).is(storepb.Code_WOULD_BLOCK)
			},
			want: []string{"anna shares", "bert shares"},
		},
		"shared now, and others share": {
			do: func(tr *lockTree) {
				tr.flock(anna, exclusive).ok()
				tr.flock(anna, shared).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.flock(bert, shared).ok() },
			want:  []string{"anna shares", "bert shares"},
		},
		"shared now, and others share some": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 9).ok()
				tr.record(anna, shared, 2, 7).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.record(bert, shared, 4, 5).ok() },
			want: []string{
				"anna has 0-1", "anna has 2-3", "anna shares 4-5", "anna has 6-7", "anna has 8-9", "bert shares 4-5",
			},
		},
		"unlocked": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 9).ok()
				tr.record(anna, nothing, 4, 5).ok()
			},
			want: []string{"anna has 0-3", "anna has 4-5", "anna has 6-9"},
		},
		"unlocked, and taken": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 9).ok()
				tr.recordWait(bert, exclusive, 5, 12).is(waiting)
				tr.record(anna, nothing, 0, 9).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.record(bert, nothing, 6, 7).ok() },
			want:  []string{"anna has 0-4", "anna has 6-7", "bert has 5-5", "bert has 8-12"},
		},
		"unlocked, and unlocked again": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 9).ok()
				tr.record(anna, nothing, 0, 9).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.record(anna, nothing, 2, 9).ok() },
			want:  []string{"anna has 0-1"},
		},
		"unlocked, and closed": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 9).ok()
				tr.record(anna, nothing, 0, 9).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.close(storepb.LockKind_RECORD, anna) },
		},
		"unlocked, and its session ended": {
			do: func(tr *lockTree) {
				tr.flock(anna, exclusive).ok()
				tr.flock(anna, nothing).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.giveUp(here) },
		},
		"unlocked, and its session succeeded": {
			do: func(tr *lockTree) {
				tr.flock(anna, exclusive).ok()
				tr.flock(anna, nothing).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.succeed(here, 1).ok() },
		},
		"locked, and its session succeeded": {
			do:    func(tr *lockTree) { tr.flock(anna, exclusive).ok() },
			after: func(tr *lockTree, _ uint64) { tr.succeed(here, 1).ok() },
			want:  []string{"anna had"},
		},
		"unlocked, and another unlock fills the queue": {
			do: func(tr *lockTree) {
				tr.flock(anna, shared).ok()
				tr.flock(anna, nothing).ok()
			},
			after: func(tr *lockTree, _ uint64) {
				tr.flock(bert, exclusive).ok()
				tr.flockWait(anna, exclusive).is(waiting)
				tr.flock(bert, nothing).ok()
				tr.flock(anna, nothing).ok()
			},
		},
		"upgraded": {
			do: func(tr *lockTree) {
				tr.record(anna, shared, 0, 4).ok()
				tr.record(anna, exclusive, 3, 9).ok()
			},
			want: []string{"anna shares 0-2", "anna shares 3-4"},
		},
		"locked again by another call": {
			do:    func(tr *lockTree) { tr.record(anna, exclusive, 0, 9).ok() },
			after: func(tr *lockTree, _ uint64) { tr.record(anna, exclusive, 4, 5).ok() },
			want:  []string{"anna has 4-5"},
		},
		"touched by another call": {
			do:    func(tr *lockTree) { tr.record(anna, exclusive, 0, 4).ok() },
			after: func(tr *lockTree, _ uint64) { tr.record(anna, exclusive, 5, 9).ok() },
			want:  []string{"anna has 5-9"},
		},
		"joined with what was there": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 4).ok()
				tr.acknowledge(anna)
				tr.record(anna, exclusive, 5, 9).ok()
				tr.requireLocks("anna has 0-9")
			},
			after: func(tr *lockTree, _ uint64) { tr.record(anna, nothing, 2, 6).ok() },
			want:  []string{"anna has 0-1"},
		},
		"queued, while its owner let go of what it had": {
			do: func(tr *lockTree) {
				tr.record(anna, shared, 0, 9).ok()
				tr.record(bert, shared, 0, 9).ok()
				tr.recordWait(anna, exclusive, 0, 9).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) {
				tr.record(anna, nothing, 0, 9).ok()
				tr.record(bert, nothing, 0, 9).ok()
				tr.requireLocks("anna has 0-9")
			},
		},
		"upgraded later": {
			do: func(tr *lockTree) {
				tr.record(anna, shared, 0, 9).ok()
				tr.record(bert, shared, 0, 9).ok()
				tr.recordWait(anna, exclusive, 0, 9).is(waiting)
			},
			after: func(tr *lockTree, _ uint64) { tr.record(bert, nothing, 0, 9).ok() },
			want:  []string{"anna shares 0-9"},
		},
		"unlocked, and a call from before is granted": {
			do: func(tr *lockTree) {
				tr.record(anna, shared, 0, 9).ok()
				tr.record(bert, shared, 0, 9).ok()
				tr.recordWait(anna, exclusive, 0, 9).is(waiting)
				tr.record(anna, nothing, 0, 9).ok()
			},
			after: func(tr *lockTree, _ uint64) { tr.record(bert, nothing, 0, 9).ok() },
			want:  []string{"anna has 0-9"},
		},
		"queued, a deadlock, refused": {
			do: func(tr *lockTree) {
				tr.record(anna, exclusive, 0, 0).ok()
				tr.record(bert, exclusive, 1, 1).ok()
				tr.processWait(bert, exclusive, 0, 0).is(waiting)
				tr.processWait(anna, exclusive, 1, 1).is(storepb.Code_DEADLOCK)
			},
			want: []string{"anna has 0-0", "bert has 1-1", "bert waits for 0-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newLockTree(t)
			test.do(tr)
			last := tr.seqs[here]
			if test.after != nil {
				test.after(tr, last)
			}
			tr.cancel(anna, last)
			tr.requireLocks(test.want...)
			tr.cancel(anna, last)
			tr.requireLocks(test.want...)
		})
	}
}

// TestTakeBackSeveral cancels calls whose locks replaced one another, in every order.
func TestTakeBackSeveral(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.acknowledge(anna)
		first := tr.seqs[here] + 1
		tr.record(anna, exclusive, 0, 9).ok()
		tr.record(anna, exclusive, 4, 9).ok()
		tr.record(anna, exclusive, 0, 6).ok()
		for _, i := range order {
			tr.cancel(anna, first+uint64(i))
		}
		require.True(t, tr.ns.holds(&advisory{
			ino: tr.ino, kind: storepb.LockKind_RECORD, session: here, owner: anna.owner, start: 0, end: 9,
		}), "%v", order)
		tr.record(bert, shared, 0, 9).ok()
		tr.record(anna, nothing, 0, 9).ok()
		tr.requireLocks("bert shares 0-9")
	}
}

// TestTakeBackUnlockOfLock cancels a lock and its release.
func TestTakeBackUnlockOfLock(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.record(anna, exclusive, 0, 9).ok()
		first := tr.seqs[here]
		tr.record(anna, nothing, 0, 9).ok()
		for _, i := range order {
			tr.cancel(anna, first+uint64(i))
		}
		tr.requireLocks("anna shares 0-9")
	}
}

func TestTakeLockThatComesLate(t *testing.T) {
	tr := newLockTree(t)
	late := tr.next(here, opOf(&storepb.TakeLock{Ino: tr.ino, Type: exclusive, Owner: 1, Session: here}))
	tr.cancel(anna, late.GetSeq())
	tr.apply(late).is(storepb.Code_CANCELLED)
	tr.requireLocks()
}

// TestUndoIsBounded: what a reply keeps fits into a record of a snapshot, whatever its command did.
func TestUndoIsBounded(t *testing.T) {
	for name, to := range map[string]storepb.LockType{"released": nothing, "replaced": exclusive} {
		t.Run(name, func(t *testing.T) {
			tr := newLockTree(t)
			for i := range uint64(40_000) {
				tr.ns.putAdvisory(&advisory{
					ino: tr.ino, kind: storepb.LockKind_RECORD, session: here, owner: anna.owner, start: 2 * i, end: 2 * i, seq: 1,
				})
			}
			tr.record(anna, to, 0, lastByte).ok()
			tr.restart()
			tr.cancel(anna, tr.seqs[here])
			tr.requireLocks()
		})
	}
	t.Run("while there is room", func(t *testing.T) {
		tr := newLockTree(t)
		for i := range uint64(maxUndo) {
			tr.record(anna, shared, 2*i, 2*i).ok()
		}
		tr.record(anna, exclusive, 0, lastByte).ok()
		tr.restart()
		tr.cancel(anna, tr.seqs[here])
		require.Equal(t, maxUndo, tr.ns.advisories.Len())
		tr.tick(time.Second)
	})
}
