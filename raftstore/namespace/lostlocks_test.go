package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (tr *lockTree) lose(w who, kind storepb.LockKind) {
	tr.tb.Helper()
	tr.do(w.session, opOf(&storepb.DropLocks{Ino: tr.ino, Kind: kind, Owners: []uint64{w.owner}, Lost: true})).ok()
}

// TestLostLocksStayForTheLockDelay: somebody may still rely on them.
func TestLostLocksStayForTheLockDelay(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, shared, 0, 9).ok()
	tr.record(bert, shared, 4, 4).ok()
	tr.record(cleo, exclusive, 20, 20).ok()
	tr.recordWait(anna, exclusive, 0, 9).is(storepb.Code_WAITING)
	asked := tr.seqs[here]
	tr.recordWait(dora, exclusive, 9, 20).is(storepb.Code_WAITING)
	tr.lose(anna, storepb.LockKind_RECORD)
	lost := tr.now
	require.Contains(t, tr.ns.Ended(), advisory.Request{Session: here, Seq: ids.Sequence(asked)})
	tr.requireLocks("anna shared 0-9", "cleo has 20-20", "bert shares 4-4", "dora waits for 9-20")
	tr.record(cleo, nothing, 20, 20).ok()
	tr.record(anna, exclusive, 0, 0).is(storepb.Code_WOULD_BLOCK)
	tr.close(storepb.LockKind_RECORD, anna)
	tr.requireLocks("anna shared 0-9", "bert shares 4-4", "dora waits for 9-20")
	tr.restart()
	require.False(t, tr.ns.Due(lost+int64(DefaultLockDelay)-1))
	tr.now = lost
	tr.tick(DefaultLockDelay)
	tr.requireLocks("bert shares 4-4", "dora has 9-20")
}

func TestLostLocksWithoutADelayGoAtOnce(t *testing.T) {
	tr := newLockTree(t)
	tr.setDelay(0)
	tr.flock(anna, exclusive).ok()
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	tr.lose(anna, storepb.LockKind_FLOCK)
	tr.requireLocks("bert has")
}

// TestCancelledLock: what was taken stays until its owner drops it, for others use the same descriptor; nothing comes later.
func TestCancelledLock(t *testing.T) {
	t.Run("granted", func(t *testing.T) {
		tr := newLockTree(t)
		tr.record(anna, shared, 0, 9).ok()
		tr.record(anna, exclusive, 0, 4).ok()
		tr.cancel(anna, tr.seqs[here])
		tr.requireLocks("anna has 0-4", "anna shares 5-9")
	})
	t.Run("waiting", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(bert, shared).ok()
		tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
		asked := tr.seqs[here]
		tr.flockWait(dora, shared).is(storepb.Code_WAITING)
		tr.cancel(anna, asked)
		require.Contains(t, tr.ns.Ended(), advisory.Request{Session: here, Seq: ids.Sequence(asked)})
		tr.requireLocks("bert shares", "dora shares")
	})
	t.Run("not come yet", func(t *testing.T) {
		tr := newLockTree(t)
		late := tr.next(here, opOf(&storepb.TakeLock{Ino: tr.ino, Type: exclusive, Owner: 1, Session: here}))
		tr.cancel(anna, late.GetSeq())
		tr.apply(late).is(storepb.Code_CANCELLED)
		tr.requireLocks()
	})
}
