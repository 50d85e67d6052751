package namespace

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// lockDirectory makes a directory "lock" for process 1, under a rule by which its creator holds it, and returns its number.
func lockDirectory(tb testing.TB) (tr *driver, dir uint64) {
	tr = newDriver(tb)
	tr.rule(&storepb.Rule{Pattern: "lock", Holder: "creator"}).ok()
	mkdir := opOf(&storepb.Create{Parent: RootIno, Name: []byte("lock"), Mode: someDir})
	return tr, tr.as(here, 1, mkdir, processOf(1)).ok().GetAttr().GetIno()
}

// own puts a file with the pid of a process in a directory, as `echo $$ >lock/owner` does.
func (tr *driver) own(dir uint64, name string, p *storepb.Process) (ino uint64) {
	tr.tb.Helper()
	ino = tr.do(here, createOp(dir, name, false)).ok().GetAttr().GetIno()
	tr.fill(here, dir, name, pidFacts(storepb.Format_PID, p)).ok()
	return ino
}

// TestALockDirectoryGoesWithItsCreatorsLocks after any end of its creator.
func TestALockDirectoryGoesWithItsCreatorsLocks(t *testing.T) {
	for _, how := range []*storepb.ProcessEnd{nil, {Kind: storepb.EndKind_END_EXIT}, {Kind: storepb.EndKind_END_SIGNAL, Number: 9}} {
		for _, entries := range []int{1, maxLockEntries} {
			tr, dir := lockDirectory(t)
			for n := range entries {
				tr.own(dir, fmt.Sprint("owner", n), processOf(1))
			}
			tr.tick(time.Minute)
			tr.requireState("held", "lock")
			event := tr.lastEvent()
			tr.endedBy(here, how, processOf(1)).ok()
			tr.requireNone("lock")
			removed := 0
			for _, e := range tr.eventsSince(event) {
				if e.GetEvent() == eventRemoved {
					removed++
				}
			}
			require.Equal(t, 1+entries, removed, "each is told of")
			requireConsistent(t, tr.ns)
			tr.as(there, 1, createOp(RootIno, "lock", true), processOf(2)).ok()
		}
	}
}

// TestALockDirectoryStaysForWhatElseIsInIt, and goes once that is away.
func TestALockDirectoryStaysForWhatElseIsInIt(t *testing.T) {
	for why, put := range map[string]func(tr *driver, dir uint64) (away *storepb.Op){
		`"data" in it is not a lock of the process that made it`: func(tr *driver, dir uint64) *storepb.Op {
			tr.writeAs(here, tr.do(here, createOp(dir, "data", false)).ok().GetAttr().GetIno(), "some data", nil).ok()
			return opOf(&storepb.Unlink{Parent: dir, Name: []byte("data")})
		},
		`"other" in it is not a lock of the process that made it`: func(tr *driver, dir uint64) *storepb.Op {
			tr.own(dir, "other", processOf(2))
			return opOf(&storepb.Unlink{Parent: dir, Name: []byte("other")})
		},
		`"package" in it is not a lock of the process that made it`: func(tr *driver, dir uint64) *storepb.Op {
			tr.do(here, opOf(&storepb.Create{Parent: dir, Name: []byte("package"), Mode: someDir})).ok()
			return opOf(&storepb.Unlink{Parent: dir, Name: []byte("package"), Directory: true})
		},
		"it is a directory that has more than 16 entries": func(tr *driver, dir uint64) *storepb.Op {
			for n := range maxLockEntries {
				tr.own(dir, fmt.Sprint(n), processOf(1))
			}
			return opOf(&storepb.Unlink{Parent: dir, Name: []byte("0")})
		},
		`a program has or wants a flock or fcntl lock of "locked" in it`: func(tr *driver, dir uint64) *storepb.Op {
			tr.otherLock(there, tr.own(dir, "locked", processOf(1)), 1, false).ok()
			return opOf(&storepb.DropLocks{Ino: tr.at(dir, "locked"), Kind: storepb.LockKind_FLOCK, Owners: []uint64{1}})
		},
	} {
		t.Run(why, func(t *testing.T) {
			tr, dir := lockDirectory(t)
			tr.own(dir, "owner", processOf(1))
			away := put(tr, dir)
			tr.gone(here, processOf(1)).ok()
			tr.tick(time.Hour)
			tr.requireState("stale", "lock")
			require.Equal(t, why, tr.lock("lock").GetStaysBecause())
			requireConsistent(t, tr.ns)
			tr.restart()
			tr.tick(time.Hour)
			tr.requireState("stale", "lock")
			require.Contains(t, fmt.Sprint(tr.ns.Query(listLocks(0, "", 0)).GetLocks()), `path:"lock" `, "it is listed")
			session := uint64(here)
			if away.GetDropLocks() != nil {
				session = there
			}
			tr.do(session, away).ok()
			tr.tick(contentGrace + 1)
			tr.requireNone("lock")
			requireConsistent(t, tr.ns)
		})
	}
}

// TestAProgramMayRemoveAStaleDirectory with all that is in it, as rm -r does: lockfs does not come before its last step.
func TestAProgramMayRemoveAStaleDirectory(t *testing.T) {
	tr, dir := lockDirectory(t)
	tr.do(here, opOf(&storepb.Create{Parent: dir, Name: []byte("package"), Mode: someDir})).ok()
	tr.gone(here, processOf(1)).ok()
	tr.tick(time.Hour)
	tr.do(there, opOf(&storepb.Unlink{Parent: dir, Name: []byte("package"), Directory: true})).ok()
	tr.tick(time.Second)
	tr.do(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock"), Directory: true})).ok()
}

// TestAFullDirectoryIsNotRemovedByTime, as its creator may be at work, nor one that is kept, nor one that no rule covers.
func TestAFullDirectoryIsNotRemovedByTime(t *testing.T) {
	for name, rule := range map[string]*storepb.Rule{
		"by time": {Pattern: "lock", Holder: "creator", StaleAfter: int64(time.Minute)},
		"kept":    {Pattern: "lock", Holder: "creator", OnStale: "keep"},
		"no rule": {Pattern: "another", Holder: "creator"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, dir := lockDirectory(t)
			tr.deleteRule("lock").ok()
			tr.rule(rule).ok()
			tr.own(dir, "owner", processOf(1))
			tr.tick(time.Hour)
			require.NotZero(t, tr.at(RootIno, "lock"))
			if name != "by time" {
				tr.gone(here, processOf(1)).ok()
				tr.tick(time.Hour)
				require.NotZero(t, tr.at(RootIno, "lock"))
			}
			requireConsistent(t, tr.ns)
		})
	}
}

// TestADirectoryThatWasFilledWithDataIsHeldByItsCreator if its own name says lock, as 00LOCK does: it becomes stale and stays.
func TestADirectoryThatWasFilledWithDataIsHeldByItsCreator(t *testing.T) {
	tr, dir := lockDirectory(t)
	tr.do(here, opOf(&storepb.Create{Parent: dir, Name: []byte("package"), Mode: syscall.S_IFDIR | 0o755})).ok()
	tr.requireState("held", "lock")
	require.NotEmpty(t, tr.lock("lock").GetBecause())
	tr.gone(here, processOf(1)).ok()
	tr.requireState("stale", "lock")
	require.NotEmpty(t, tr.lock("lock").GetStaysBecause())
}

// TestWhyALockOfAProcessThatExitedStays.
func TestWhyALockOfAProcessThatExitedStays(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "exited", pidFacts(storepb.Format_PID, processOf(1)))
	tr.take(here, "kept", keptFacts(processOf(1)))
	tr.endedBy(here, nil, processOf(1)).ok()
	require.Contains(t, tr.lock("exited").GetStaysBecause(), "on purpose")
	require.Empty(t, tr.lock("kept").GetStaysBecause())
}

// TestAChangeOfAStaleDirectoryDelaysItsRemoval, as a program such as rm -r may be at work. A restored state removes it at the same time.
func TestAChangeOfAStaleDirectoryDelaysItsRemoval(t *testing.T) {
	for name, op := range map[string]*storepb.Op{
		"chmod":       opOf(&storepb.SetAttr{Mode: new(uint32(0o700))}),
		"setxattr":    opOf(&storepb.SetXattr{Name: []byte("user.a")}),
		"removexattr": opOf(&storepb.RemoveXattr{Name: []byte("user.b")}),
	} {
		t.Run(name, func(t *testing.T) {
			tr, dir := lockDirectory(t)
			tr.do(here, opOf(&storepb.SetXattr{Ino: dir, Name: []byte("user.b")})).ok()
			tr.do(here, opOf(&storepb.Create{Parent: dir, Name: []byte("package"), Mode: someDir})).ok()
			tr.gone(here, processOf(1)).ok()
			tr.rmdir(dir, "package").ok()
			tr.tick(contentGrace - time.Second)
			switch op := op.GetOp().(type) {
			case *storepb.Op_SetAttr:
				op.SetAttr.Ino = dir
			case *storepb.Op_SetXattr:
				op.SetXattr.Ino = dir
			case *storepb.Op_RemoveXattr:
				op.RemoveXattr.Ino = dir
			}
			tr.do(here, op).ok()
			requireConsistent(t, tr.ns)
			tr.restart()
			tr.tick(contentGrace - time.Second)
			tr.requireState("stale", "lock")
			tr.tick(2 * time.Second)
			tr.requireNone("lock")
		})
	}
}
