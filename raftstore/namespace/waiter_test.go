package namespace

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func TestFirstComesFirst(t *testing.T) {
	tr := newLockTree(t)
	tr.flock(anna, shared).ok()
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	tr.flockWait(cleo, shared).is(storepb.Code_WAITING)
	tr.flockWait(dora, shared).is(storepb.Code_WAITING)
	tr.flock(anna, shared).ok()
	tr.requireLocks("anna shares", "bert waits for", "cleo waits to share", "dora waits to share")
	tr.flock(anna, nothing).ok()
	tr.requireLocks("bert has", "cleo waits to share", "dora waits to share")
	tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
	tr.flock(bert, nothing).ok()
	tr.requireLocks("cleo shares", "dora shares", "anna waits for")
	tr.flock(cleo, nothing).ok()
	tr.flockWait(bert, shared).is(storepb.Code_WAITING)
	tr.flock(dora, nothing).ok()
	tr.requireLocks("anna has", "bert waits to share")
}

func TestTryLockNeedsNoTurn(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, shared, 0, 9).ok()
	tr.recordWait(bert, exclusive, 0, 9).is(storepb.Code_WAITING)
	tr.record(cleo, shared, 0, 9).ok() // fcntl(2): only what is held is in the way
	tr.requireLocks("anna shares 0-9", "cleo shares 0-9", "bert waits for 0-9")
}

func TestRangesThatDoNotMeet(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, exclusive, 0, 4).ok()
	tr.recordWait(bert, exclusive, 4, 8).is(storepb.Code_WAITING)
	tr.recordWait(cleo, exclusive, 9, 9).ok()
	tr.recordWait(dora, exclusive, 8, 8).is(storepb.Code_WAITING) // bert is first
	tr.record(anna, nothing, 4, 4).ok()
	tr.requireLocks("anna has 0-3", "cleo has 9-9", "bert has 4-8", "dora waits for 8-8")
	tr.record(bert, shared, 8, 8).ok()
	tr.recordWait(anna, shared, 8, 8).is(storepb.Code_WAITING)
	tr.record(bert, nothing, 8, 8).ok()
	tr.requireLocks("anna has 0-3", "cleo has 9-9", "bert has 4-7", "dora has 8-8", "anna waits to share 8-8")
}

// TestUpgradePassesWhoWaitsForIt: to let those pass that wait for one's own lock would be to wait for oneself.
func TestUpgradePassesWhoWaitsForIt(t *testing.T) {
	t.Run("a writer", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.recordWait(bert, exclusive, 0, 9).is(storepb.Code_WAITING)
		tr.recordWait(anna, exclusive, 0, 9).ok()
		tr.requireLocks("anna has 0-9", "bert waits for 0-9")
	})
	t.Run("a reader behind a writer", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.recordWait(bert, exclusive, 0, 9).is(storepb.Code_WAITING)
		tr.processWait(dora, shared, 0, 9).is(storepb.Code_WAITING)
		tr.processWait(anna, exclusive, 0, 9).ok()
		tr.requireLocks("anna has 0-9", "bert waits for 0-9", "dora waits to share 0-9")
	})
	t.Run("one that waits elsewhere behind one", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.recordWait(bert, exclusive, 5, 19).is(storepb.Code_WAITING)
		tr.recordWait(dora, exclusive, 15, 29).is(storepb.Code_WAITING)
		tr.recordWait(anna, exclusive, 25, 25).ok()
		tr.requireLocks("anna shares 0-9", "anna has 25-25", "bert waits for 5-19", "dora waits for 15-29")
	})
	t.Run("when its turn comes", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.record(cleo, shared, 0, 9).ok()
		tr.recordWait(bert, exclusive, 0, 9).is(storepb.Code_WAITING)
		tr.recordWait(dora, shared, 0, 9).is(storepb.Code_WAITING)
		tr.recordWait(anna, exclusive, 0, 9).is(storepb.Code_WAITING)
		tr.record(cleo, nothing, 0, 9).ok()
		tr.requireLocks("anna has 0-9", "bert waits for 0-9", "dora waits to share 0-9")
		tr.record(anna, nothing, 0, 9).ok()
		tr.requireLocks("bert has 0-9", "dora waits to share 0-9")
	})
	t.Run("when it gets what they wait for", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(cleo, exclusive, 0, 9).ok()
		tr.recordWait(bert, exclusive, 5, 19).is(storepb.Code_WAITING)
		tr.recordWait(anna, exclusive, 12, 25).is(storepb.Code_WAITING)
		tr.record(anna, exclusive, 11, 11).ok() // now bert waits for anna too
		tr.requireLocks("anna has 11-25", "cleo has 0-9", "bert waits for 5-19")
	})
}

// TestDowngradeInQueue: a lock from the queue can be less than what its owner has.
func TestDowngradeInQueue(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, exclusive, 0, 4).ok()
	tr.record(cleo, exclusive, 5, 9).ok()
	tr.recordWait(bert, shared, 0, 4).is(storepb.Code_WAITING)
	tr.recordWait(anna, shared, 0, 9).is(storepb.Code_WAITING)
	tr.record(cleo, nothing, 5, 9).ok()
	tr.requireLocks("anna shares 0-9", "bert shares 0-4")
}

// firstWaits is the first request in the queue.
func firstWaits(ns *Namespace) (first *storepb.AdvisoryLock) {
	ns.locks.Each(func(lock *storepb.AdvisoryLock) bool {
		first = lock
		return lock.GetPosition() == 0
	})
	return first
}

func TestInterrupt(t *testing.T) {
	setUp := func(t *testing.T) (tr *lockTree, first uint64) {
		tr = newLockTree(t)
		tr.flock(cleo, exclusive).ok()
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		first = tr.seqs[there]
		tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
		return tr, first
	}
	t.Run("while it waits", func(t *testing.T) {
		tr, first := setUp(t)
		require.Equal(t, storepb.Code_WAITING, tr.awaits(bert, first))
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		require.Equal(t, []advisory.Request{{Session: there, Seq: ids.Sequence(first)}}, tr.ns.Ended())
		require.Equal(t, storepb.Code_NOT_FOUND, tr.awaits(bert, first))
		tr.requireLocks("cleo has", "bert wanted", "anna waits for")
		tr.close(storepb.LockKind_FLOCK, cleo)
		tr.requireLocks("anna has", "bert wanted")
	})
	t.Run("and again", func(t *testing.T) {
		tr, first := setUp(t)
		since := firstWaits(tr.ns).GetSince()
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.requireLocks("cleo has", "bert waits for", "anna waits for")
		require.Equal(t, since, firstWaits(tr.ns).GetSince())
		require.Equal(t, storepb.Code_NOT_FOUND, tr.awaits(bert, first))
		require.Equal(t, storepb.Code_WAITING, tr.awaits(bert, tr.seqs[there]))
		tr.tick(advisory.InterruptPatience)
		tr.close(storepb.LockKind_FLOCK, cleo)
		tr.requireLocks("bert has", "anna waits for")
		require.Equal(t, storepb.Code_OK, tr.awaits(bert, tr.seqs[there]))
	})
	t.Run("and again, for something else", func(t *testing.T) {
		tr, first := setUp(t)
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		tr.flockWait(bert, shared).is(storepb.Code_WAITING)
		tr.requireLocks("cleo has", "bert wanted", "anna waits for", "bert waits to share")
	})
	t.Run("and not again", func(t *testing.T) {
		tr, first := setUp(t)
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		interrupted := tr.now
		require.False(t, tr.ns.Due(interrupted+int64(advisory.InterruptPatience)-1))
		require.True(t, tr.ns.Due(interrupted+int64(advisory.InterruptPatience)))
		tr.restart()
		tr.wait(advisory.InterruptPatience - 2*time.Second)
		tr.tick(time.Second)
		tr.requireLocks("cleo has", "bert wanted", "anna waits for")
		tr.tick(time.Second)
		tr.requireLocks("cleo has", "anna waits for")
		require.False(t, tr.ns.Due(interrupted+int64(time.Hour)))
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.requireLocks("cleo has", "anna waits for", "bert waits for")
	})
	t.Run("when it has become a lock", func(t *testing.T) {
		tr, first := setUp(t)
		tr.close(storepb.LockKind_FLOCK, cleo)
		require.Equal(t, []advisory.Request{{Session: there, Seq: ids.Sequence(first)}}, tr.ns.Ended())
		tr.interrupt(bert, first).ok()
		require.Equal(t, storepb.Code_OK, tr.awaits(bert, first))
		tr.requireLocks("bert has", "anna waits for")
	})
	t.Run("when it is gone", func(t *testing.T) {
		tr, first := setUp(t)
		tr.close(storepb.LockKind_FLOCK, bert)
		require.Equal(t, []advisory.Request{{Session: there, Seq: ids.Sequence(first)}}, tr.ns.Ended())
		tr.interrupt(bert, first).is(storepb.Code_NOT_FOUND)
		require.Equal(t, storepb.Code_NOT_FOUND, tr.awaits(bert, first))
	})
	t.Run("others need not wait for it", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, shared).ok()
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		first := tr.seqs[there]
		tr.flockWait(cleo, shared).is(storepb.Code_WAITING)
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		tr.requireLocks("anna shares", "cleo shares", "bert wanted")
		tr.flockWait(dora, shared).ok()
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.requireLocks("anna shares", "cleo shares", "dora shares", "bert waits for")
	})
	t.Run("tried again without waiting", func(t *testing.T) {
		tr, first := setUp(t)
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		tr.flock(bert, exclusive).is(storepb.Code_WOULD_BLOCK)
		tr.requireLocks("cleo has", "anna waits for")
	})
	t.Run("its session ends", func(t *testing.T) {
		tr, first := setUp(t)
		tr.interrupt(bert, first).is(storepb.Code_WAITING)
		tr.giveUp(there)
		tr.requireLocks("cleo has", "anna waits for")
		require.NotContains(t, slices.Collect(maps.Values(requestsIn(tr.ns))), true)
	})
}

// TestThreadsThatWaitForTheSame get it together, and each is told so.
func TestThreadsThatWaitForTheSame(t *testing.T) {
	tr := newLockTree(t)
	tr.flock(cleo, exclusive).ok()
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	first := tr.seqs[there]
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	tr.close(storepb.LockKind_FLOCK, cleo)
	tr.requireLocks("bert has")
	for _, seq := range []uint64{first, first + 1} {
		require.Equal(t, storepb.Code_OK, tr.awaits(bert, seq))
		tr.interrupt(bert, seq).ok()
	}
	old := &storepb.AwaitLock{Session: there, Seq: first, Ino: tr.ino, Owner: bert.owner} // does not say what it was
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(queryOf(old)).GetCode())
	old.Seq++
	require.Equal(t, storepb.Code_OK, tr.ns.Query(queryOf(old)).GetCode())
	old.Kind = 7
	require.Equal(t, storepb.Code_INVALID, tr.ns.Query(queryOf(old)).GetCode())
}

func TestAwaitRange(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, exclusive, 0, 4).ok()
	tr.record(anna, shared, 5, 9).ok()
	tr.record(anna, shared, 20, 29).ok()
	awaits := func(to storepb.LockType, start, end uint64) storepb.Code {
		return tr.ns.Query(queryOf(&storepb.AwaitLock{
			Session: here, Seq: 99, Ino: tr.ino, Kind: storepb.LockKind_RECORD, Owner: anna.owner, Type: to, Start: start, End: end,
		})).GetCode()
	}
	require.Equal(t, storepb.Code_OK, awaits(shared, 0, 9))
	require.Equal(t, storepb.Code_OK, awaits(exclusive, 1, 4))
	require.Equal(t, storepb.Code_NOT_FOUND, awaits(exclusive, 4, 5))
	require.Equal(t, storepb.Code_NOT_FOUND, awaits(shared, 9, 10))
	require.Equal(t, storepb.Code_NOT_FOUND, awaits(shared, 0, 29))
	require.Equal(t, storepb.Code_NOT_FOUND, awaits(shared, 40, 41))
}

// TestAllWhoCan: one release grants all that share, and those on other ranges, in one command.
func TestAllWhoCan(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, exclusive, 0, 9).ok()
	for _, w := range []who{bert, cleo, dora} {
		tr.recordWait(w, shared, 0, 4).is(storepb.Code_WAITING)
		tr.recordWait(w, exclusive, 3+w.session*2+w.owner, 3+w.session*2+w.owner).is(storepb.Code_WAITING)
	}
	tr.close(storepb.LockKind_RECORD, anna)
	require.Len(t, tr.ns.Ended(), 6)
	require.Zero(t, len(requestsIn(tr.ns)))
}
