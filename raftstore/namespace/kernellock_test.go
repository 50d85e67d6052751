package namespace

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// kernelLock takes a lock of a file for an owner of a session, of the family of its holder.
func (tr *driver) kernelLock(session, ino, owner uint64, kind storepb.LockKind, wait bool) step {
	return tr.lockAs(session, 7, true, &storepb.TakeLock{Ino: ino, Kind: kind, Owner: owner, Wait: wait})
}

// lockAs has a user take an exclusive lock, and says whether the process is of the family of those that hold the file.
func (tr *driver) lockAs(session uint64, uid uint32, kin bool, op *storepb.TakeLock) step {
	tr.tb.Helper()
	op.Type, op.End, op.Session = storepb.LockType_EXCLUSIVE, math.MaxInt64, session
	for {
		cmd := tr.next(session, opOf(proto.CloneOf(op)))
		cmd.Caller.Uid = uid
		taken := tr.apply(cmd)
		if taken.GetCode() != storepb.Code_NEED_LINEAGE {
			return taken
		}
		require.NotEmpty(tr.tb, taken.GetProcesses())
		op.Judged, op.Kin = taken.GetProcesses(), kin
	}
}

func (tr *driver) kernelUnlock(session, ino, owner uint64, kind storepb.LockKind) {
	tr.tb.Helper()
	tr.do(session, opOf(&storepb.DropLocks{Ino: ino, Kind: kind, Owners: []uint64{owner}})).ok()
}

// kernelLocked are the ways in which the file "lock" of that number comes to have a kernel lock, or had one.
var kernelLocked = map[string]func(tr *driver, ino uint64){
	"flock": func(tr *driver, ino uint64) { tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok() },
	"fcntl": func(tr *driver, ino uint64) { tr.kernelLock(there, ino, 1, storepb.LockKind_RECORD, false).ok() },
	"one that was released": func(tr *driver, ino uint64) {
		tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
		tr.kernelUnlock(here, ino, 1, storepb.LockKind_FLOCK)
	},
	"a waiter": func(tr *driver, ino uint64) {
		tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
		tr.kernelLock(there, ino, 1, storepb.LockKind_FLOCK, true).is(storepb.Code_WAITING)
	},
	"one before a restart": func(tr *driver, ino uint64) {
		tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
		tr.kernelUnlock(here, ino, 1, storepb.LockKind_FLOCK)
		tr.restart()
	},
	"one by another name": func(tr *driver, ino uint64) {
		tr.link(ino, RootIno, "other").ok()
		tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
		tr.unlink(here, RootIno, "other").ok()
		tr.kernelUnlock(here, ino, 1, storepb.LockKind_FLOCK)
	},
}

// ends are what has lockfs remove the lock "lock" of process 1 on the host here, which is a day old at most.
var ends = map[string]func(tr *driver){
	"its process is gone":   func(tr *driver) { tr.gone(here, processOf(1)).ok() },
	"its host is forgotten": func(tr *driver) { tr.giveUp(here); tr.forget("here").ok() },
	"its host booted":       func(tr *driver) { tr.giveUp(here); tr.open(3, "here", "later").ok() },
	"its host is silent":    func(tr *driver) { tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: 1}).ok(); tr.giveUp(here) },
	"a rule limits its time": func(tr *driver) {
		tr.rule(&storepb.Rule{Pattern: "*", Format: "none", StaleAfter: 1, OnStale: "remove"}).ok()
	},
}

// TestWhoOnlyUnlocksHasLockedNothing: the file stays the lock that its content says.
func TestWhoOnlyUnlocksHasLockedNothing(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.do(there, opOf(&storepb.TakeLock{
		Ino: ino, Kind: storepb.LockKind_RECORD, Type: storepb.LockType_UNLOCK, Owner: 1, End: math.MaxInt64, Session: there,
	})).ok()
	require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), 1)
	tr.gone(here, processOf(1)).ok()
	tr.tick(0)
	tr.requireNone("lock")
}

// TestFileWithAKernelLockIsNeverRemovedByLockfs, whatever its content says: who waits for the lock waits for that inode.
func TestFileWithAKernelLockIsNeverRemovedByLockfs(t *testing.T) {
	for way, lock := range kernelLocked {
		for why, remove := range ends {
			t.Run(way+", "+why, func(t *testing.T) {
				tr := newDriver(t)
				ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
				lock(tr, ino)
				remove(tr)
				tr.tick(24 * time.Hour)
				require.Equal(t, ino, tr.at(RootIno, "lock"))
				tr.restart()
				tr.tick(24 * time.Hour)
				require.Equal(t, ino, tr.at(RootIno, "lock"))
				require.Equal(t, "held", tr.lock("lock").GetState())
				require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses(), "nobody has to watch it")
			})
		}
	}
	for why, remove := range ends {
		t.Run("without one, "+why, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
			remove(tr)
			tr.tick(24 * time.Hour)
			tr.requireNone("lock")
		})
	}
}

// TestMakerOfAFileWithAKernelLockIsNotItsHolder: the rule's, too, gives way to the kernel lock.
func TestMakerOfAFileWithAKernelLockIsNotItsHolder(t *testing.T) {
	tr := byCreator(t, "remove")
	ino := tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok().GetAttr().GetIno()
	tr.kernelLock(there, ino, 1, storepb.LockKind_FLOCK, false).ok()
	tr.gone(here, processOf(1)).ok()
	tr.tick(time.Hour)
	require.Equal(t, ino, tr.at(RootIno, "lock"))
}

// TestKernelLockIsTheOnlyGuardOfItsFile: no name of it is refused to anybody, whatever its content says and whatever they saw.
func TestKernelLockIsTheOnlyGuardOfItsFile(t *testing.T) {
	for way, lock := range kernelLocked {
		for _, reach := range reaches() {
			t.Run(way+", "+reach.name, func(t *testing.T) {
				for _, facts := range []*storepb.Facts{
					pidFacts(storepb.Format_PID, processOf(1)), pidFacts(storepb.Format_BEADS, processOf(1)), nil,
				} {
					tr := guarded(t, facts)
					tr.rule(&storepb.Rule{Pattern: "lock", Guard: "host"}).ok()
					lock(tr, tr.at(RootIno, "lock"))
					tr.announceAll()
					event := tr.lastEvent()
					seen := []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: 1, Empty: true}}
					require.Empty(t, tr.lock("lock").GetBecause())
					require.Empty(t, tr.lock("lock").GetRemover())
					tr.do(there, withObservations(reach.op(tr, there), seen)).ok()
					for _, e := range tr.eventsSince(event) {
						require.Contains(t, []string{eventReleased, eventAcquired, eventFileRemoved}, e.GetEvent(), "%v", e)
					}
					requireConsistent(t, tr.ns)
				}
			})
		}
	}
}

// TestNextHolderOfAKernelLockWritesItsPID: it steals from nobody, and the one before is no holder of anything.
func TestNextHolderOfAKernelLockWritesItsPID(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.announceAll()
	tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
	event := tr.lastEvent()
	tr.kernelUnlock(here, ino, 1, storepb.LockKind_FLOCK)
	tr.kernelLock(there, ino, 1, storepb.LockKind_FLOCK, false).ok()
	tr.fill(there, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(2))).ok()
	tr.tick(time.Minute)
	tr.requireEvents(event)
	tr.gone(there, processOf(2)).ok()
	require.Equal(t, ino, tr.at(RootIno, "lock"))
}

// TestCancelKeepsAFileWithAKernelLock that somebody found and locked before its creation was taken back.
func TestCancelKeepsAFileWithAKernelLock(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		tr := newDriver(t)
		made := tr.next(here, createOp(RootIno, "lock", exclusive))
		ino := tr.apply(made).ok().GetAttr().GetIno()
		tr.kernelLock(there, ino, 1, storepb.LockKind_FLOCK, false).ok()
		tr.restart()
		tr.cancel(made).ok()
		require.Equal(t, ino, tr.at(RootIno, "lock"))
	}
}

// TestRemovalOfAFileThatOthersLock: they have a lock of a file without a name, and the next program makes another one.
func TestRemovalOfAFileThatOthersLock(t *testing.T) {
	for name, c := range map[string]struct {
		others func(tr *driver, ino uint64)
		reason string
	}{
		"none":               {func(*driver, uint64) {}, ""},
		"the remover's own":  {func(tr *driver, ino uint64) { tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok() }, ""},
		"of another session": {func(tr *driver, ino uint64) { tr.kernelLock(there, ino, 1, storepb.LockKind_RECORD, false).ok() }, "1 other sessions' flock or fcntl locks and 0 waiting"},
		"that wait, also there": {func(tr *driver, ino uint64) {
			tr.kernelLock(here, ino, 1, storepb.LockKind_FLOCK, false).ok()
			tr.kernelLock(here, ino, 2, storepb.LockKind_FLOCK, true).is(storepb.Code_WAITING)
		}, "0 other sessions' flock or fcntl locks and 1 waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, remove := range map[string]func(tr *driver){
				"unlink": func(tr *driver) { tr.unlink(here, RootIno, "job").ok() },
				"rename": func(tr *driver) { tr.do(here, renameOp(RootIno, "new", RootIno, "job")).ok() },
			} {
				t.Run(how, func(t *testing.T) {
					tr := newDriver(t)
					ino := tr.create(RootIno, "job", syscall.S_IFREG|0o644).ok().GetAttr().GetIno()
					tr.do(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("new"), Mode: syscall.S_IFREG | 0o644})).ok()
					c.others(tr, ino)
					remove(tr)
					var found []*storepb.Event
					for _, e := range tr.eventsSince(0) {
						if e.GetEvent() == eventFileRemoved {
							found = append(found, e)
						}
					}
					if c.reason == "" {
						require.Empty(t, found)
						return
					}
					require.Len(t, found, 1)
					require.Contains(t, found[0].GetReason(), c.reason)
					require.Equal(t, "job", string(found[0].GetPath()))
				})
			}
		})
	}
}
