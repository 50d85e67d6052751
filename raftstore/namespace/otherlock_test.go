package namespace

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// nobody is a user who may read a lock file and not write to it.
const nobodysUID = 65534

// otherLock takes a kernel lock as a process that is not of the holder's family.
func (tr *driver) otherLock(session, ino, owner uint64, wait bool) step {
	return tr.lockAs(session, nobodysUID, false, &storepb.TakeLock{Ino: ino, Kind: storepb.LockKind_FLOCK, Owner: owner, Wait: wait})
}

// heldContents are contents whose holder is known.
func heldContents() map[string]*storepb.Facts {
	return map[string]*storepb.Facts{
		"pid": pidFacts(storepb.Format_PID, processOf(1)), "beads": pidFacts(storepb.Format_BEADS, processOf(1)), "tower": towerFacts("x"),
		"forrst": ownedFacts("me", 0), "beads, not identified": pidFacts(storepb.Format_BEADS, nil),
	}
}

// TestAReaderDisarmsNoLock: its guard and the watching of its process stay, whether the reader still has a kernel lock or not.
func TestAReaderDisarmsNoLock(t *testing.T) {
	for format, facts := range heldContents() {
		for _, released := range []bool{true, false} {
			t.Run(format, func(t *testing.T) {
				tr := newDriver(t)
				ino := tr.take(here, "lock", facts)
				watched := len(tr.ns.Query(listProcesses("here")).GetProcesses())
				tr.otherLock(there, ino, 1, false).ok()
				if released {
					tr.kernelUnlock(there, ino, 1, storepb.LockKind_FLOCK)
				}
				tr.wait(time.Minute)
				for range 2 {
					require.NotEmpty(t, tr.lock("lock").GetBecause())
					require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), watched)
					tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
					requireConsistent(t, tr.ns)
					tr.restart()
				}
			})
		}
	}
}

// TestARefusedAttemptChangesNothing, neither of a reader nor of the holder's family.
func TestARefusedAttemptChangesNothing(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.otherLock(there, ino, 1, false).ok()
	tr.otherLock(there, ino, 2, false).is(storepb.Code_WOULD_BLOCK)
	tr.kernelLock(here, ino, 3, storepb.LockKind_FLOCK, false).is(storepb.Code_WOULD_BLOCK)
	tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
	require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), 1)
}

// TestAReadersLockPostponesARemoval, as long as it is held or waited for, and no longer. The lock is stale meanwhile.
func TestAReadersLockPostponesARemoval(t *testing.T) {
	for name, end := range map[string]func(tr *driver, ino uint64){
		"released":    func(tr *driver, ino uint64) { tr.kernelUnlock(there, ino, 1, storepb.LockKind_FLOCK) },
		"session end": func(tr *driver, _ uint64) { tr.giveUp(there); tr.tick(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
			tr.otherLock(there, ino, 1, false).ok()
			tr.gone(here, processOf(1)).ok()
			tr.tick(time.Hour)
			tr.requireState("stale", "lock")
			require.False(t, tr.ns.Due(tr.now))
			tr.restart()
			tr.tick(time.Hour)
			tr.requireState("stale", "lock")
			requireConsistent(t, tr.ns)
			end(tr, ino)
			tr.tick(0)
			tr.requireNone("lock")
			requireConsistent(t, tr.ns)
		})
	}
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.otherLock(there, ino, 1, false).ok()
	tr.otherLock(there, ino, 2, true).is(storepb.Code_WAITING)
	tr.gone(here, processOf(1)).ok()
	tr.kernelUnlock(there, ino, 1, storepb.LockKind_FLOCK)
	tr.tick(0)
	tr.requireState("stale", "lock")
	tr.do(there, opOf(unlinkOp("lock"))).ok() // it is stale, and can be removed by a program
}

// TestAReaderDoesNotDisarmALockThatIsJustMade: before its content tells who holds it.
func TestAReaderDoesNotDisarmALockThatIsJustMade(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", nil)
	tr.otherLock(there, ino, 1, false).ok()
	tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
	tr.do(here, opOf(&storepb.SetContent{Ino: ino, IfVersion: tr.attr(ino).GetVersion()})).ok() // a heartbeat begins
	tr.otherLock(there, ino, 2, false).is(storepb.Code_WOULD_BLOCK)
	tr.kernelUnlock(there, ino, 1, storepb.LockKind_FLOCK)
	tr.otherLock(there, ino, 2, false).ok()
	tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
	tr.kernelUnlock(there, ino, 2, storepb.LockKind_FLOCK)
	tr.gone(here, processOf(1)).ok()
	tr.tick(0)
	tr.requireNone("lock")
}

// TestAReaderDoesNotDisarmTheLockOfACreator.
func TestAReaderDoesNotDisarmTheLockOfACreator(t *testing.T) {
	tr := byCreator(t, "remove")
	ino := tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok().GetAttr().GetIno()
	tr.otherLock(there, ino, 1, false).ok()
	tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
	tr.kernelUnlock(there, ino, 1, storepb.LockKind_FLOCK)
	tr.gone(here, processOf(1)).ok()
	tr.tick(0)
	tr.requireNone("lock")
}

// TestKernelLocksThatMarkAFile without a known holder: those of its owner, of root, and of users who may write to it.
func TestKernelLocksThatMarkAFile(t *testing.T) {
	for name, row := range map[string]struct {
		uid     uint32
		mode    uint32
		content string
		marks   bool
	}{
		"its owner":             {7, 0o600, "", true},
		"root":                  {0, 0o600, "", true},
		"a reader":              {nobodysUID, 0o644, "", false},
		"a user who may write":  {nobodysUID, 0o666, "", true},
		"a member of its group": {nobodysUID, 0o660, "", true}, // the driver's callers have one group
		"a reader of data":      {nobodysUID, 0o644, strings.Repeat("data ", 20), true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			ino := tr.take(here, "lock", nil)
			tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Mode: &row.mode})).ok()
			if row.content != "" {
				tr.writeAs(here, ino, row.content, nil).ok()
			}
			tr.lockAs(there, row.uid, false, &storepb.TakeLock{Ino: ino, Kind: storepb.LockKind_FLOCK, Owner: 1}).ok()
			tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
			require.Equal(t, row.marks, tr.lock("lock").GetBecause() == "")
			require.Equal(t, row.marks, tr.do(there, opOf(unlinkOp("lock"))).GetCode() == storepb.Code_OK)
		})
	}
}

// TestAHolderThatLockedItsFileBefore it wrote its pid is guarded by that kernel lock, also in a file that was another process's.
func TestAHolderThatLockedItsFileBefore(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.gone(here, processOf(1)).ok() // of an exclusive name
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(2)))
	tr.do(here, opOf(&storepb.SetContent{Ino: ino, IfVersion: tr.attr(ino).GetVersion()})).ok()
	tr.lockAs(here, nobodysUID, false, &storepb.TakeLock{Ino: ino, Kind: storepb.LockKind_RECORD, Owner: 1, Pid: 3}).ok()
	tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(3))).ok()
	require.Empty(t, tr.lock("lock").GetBecause(), "its content is data")
	tr.gone(here, processOf(3)).ok()
	tr.tick(0)
	require.Equal(t, ino, tr.at(RootIno, "lock"))
	requireConsistent(t, tr.ns)
}

// TestAMountHasToJudgeThePresentHolder: what it said of another one is not believed.
func TestAMountHasToJudgeThePresentHolder(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	op := &storepb.TakeLock{
		Ino: ino, Owner: 1, Type: storepb.LockType_EXCLUSIVE, End: math.MaxInt64, Session: here, Kin: true,
		Judged: []*storepb.Process{processOf(2), nil},
	}
	asked := tr.do(here, opOf(op)).is(storepb.Code_NEED_LINEAGE).GetProcesses()
	require.Len(t, asked, 1)
	requireSame(t, processOf(1), asked[0])
	held, _ := tr.ns.KernelLocks()
	require.Zero(t, held, "nothing was done")
}
