package namespace

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// removed makes a file of data and removes it here.
func removed(tr *driver, name string) uint64 {
	ino := tr.create(RootIno, name, syscall.S_IFREG|0o644).ok().GetAttr().GetIno()
	tr.write(here, ino, "held").ok()
	require.Equal(tr.tb, ino, tr.unlink(here, RootIno, name).ok().GetRemovedIno())
	return ino
}

func (tr *driver) pin(session, ino uint64) step { return tr.do(session, opOf(&storepb.Pin{Ino: ino})) }
func (tr *driver) unpin(session, ino uint64) step {
	return tr.do(session, opOf(&storepb.Unpin{Ino: ino}))
}

// pass lets time go by with commands that change nothing.
func (tr *driver) pass(d time.Duration) {
	tr.wait(d - time.Second)
	tr.do(here, opOf(&storepb.SetLimits{})).ok()
}

func TestOrphan(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	ino := removed(tr, "lock")
	require.Zero(t, tr.attr(ino).GetNlink())
	require.Equal(t, "held", tr.content(ino), "others read it")
	tr.write(there, ino, "theirs").ok()
	require.Equal(t, "theirs", tr.content(ino), "both mounts have the same file open")
	tr.write(here, ino, "mine").ok()
	require.Equal(t, "mine", tr.content(ino))
	tr.link(ino, RootIno, "back").is(storepb.Code_NOT_FOUND)
	require.NotEqual(t, ino, tr.file(RootIno, "lock"))
}

// TestRemovedDataIsSharedByAllWhoHaveItOpen: a file without a name stays while a session has it open, and each session may write.
func TestRemovedDataIsSharedByAllWhoHaveItOpen(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	ino := removed(tr, "log")
	tr.pin(there, ino).ok()
	tr.pin(here, ino).ok()
	tr.pin(there, ino).ok()
	tr.unpin(here, ino).ok()
	tr.pass(time.Hour)
	tr.write(there, ino, "theirs").ok()
	tr.ns = restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	tr.pass(time.Hour)
	tr.write(here, ino, "mine").ok()
	require.Equal(t, "mine", tr.content(ino))
	requireConsistent(t, tr.ns)
	tr.do(there, opOf(&storepb.CloseSession{})).ok()
	tr.pass(0)
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(ino)).GetCode())
}

// TestReplacedDataIsWritableElsewhere: logrotate renames a new file over one that a program on another host has open.
func TestReplacedDataIsWritableElsewhere(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	ino := tr.create(RootIno, "log", syscall.S_IFREG|0o644).ok().GetAttr().GetIno()
	tr.write(here, ino, "line").ok()
	tr.file(RootIno, "tmp")
	require.Equal(t, ino, tr.do(there, renameOp(RootIno, "tmp", RootIno, "log")).ok().GetRemovedIno())
	tr.write(here, ino, "line\nmore").ok()
}

// TestReplacedLockIsStaleElsewhere: a holder that writes heartbeats learns that it lost the lock.
func TestReplacedLockIsStaleElsewhere(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "lock")
	tr.file(RootIno, "tmp")
	require.Equal(t, ino, tr.do(there, renameOp(RootIno, "tmp", RootIno, "lock")).ok().GetRemovedIno())
	tr.write(here, ino, "heartbeat").is(storepb.Code_STALE)
	tr.write(there, ino, "own").ok()
}

func TestOrphanWithAnotherNameIsNone(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "a")
	tr.link(ino, tr.mkdir(RootIno, "elsewhere"), "b").ok()
	require.Zero(t, tr.unlink(here, RootIno, "a").ok().GetRemovedIno())
	tr.write(there, ino, "x").ok()
	tr.pin(here, ino).is(storepb.Code_STALE)
}

// TestRemovedLockIsStaleElsewhereWhilePinned: a pin keeps a lock readable, and makes it no data.
func TestRemovedLockIsStaleElsewhereWhilePinned(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "lock")
	tr.requireLock(true, RootIno, "lock")
	tr.unlink(there, RootIno, "lock").ok()
	tr.pin(here, ino).ok()
	tr.pass(time.Hour)
	tr.write(here, ino, "heartbeat").is(storepb.Code_STALE)
	require.Empty(t, tr.content(ino))
	tr.write(there, ino, "own").ok()
}

func TestOrphanAge(t *testing.T) {
	tr := newDriver(t)
	ino := removed(tr, "f")
	tr.pass(orphanAge)
	tr.attr(ino)
	tr.pass(time.Second)
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(ino)).GetCode())
	tr.write(here, ino, "x").is(storepb.Code_STALE)
	requireConsistent(t, tr.ns)
}

func TestOrphanLimit(t *testing.T) {
	tr := newDriver(t)
	oldest := removed(tr, "oldest")
	kept := removed(tr, "kept")
	tr.pin(here, kept).ok()
	second := removed(tr, "second")
	for i := 2; i < orphanLimit; i++ { // all within the age
		tr.wait(-2 * time.Second)
		tr.file(RootIno, nameOf(i))
		tr.unlink(here, RootIno, nameOf(i)).ok()
	}
	tr.attr(oldest)
	tr.file(RootIno, "f")
	tr.unlink(here, RootIno, "f").ok()
	tr.pass(0)
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(oldest)).GetCode())
	tr.attr(second)
	tr.attr(kept)
	require.Equal(t, orphanLimit, tr.ns.tree.orphans.expiring.Len())
}

func TestPin(t *testing.T) {
	tr := newDriver(t)
	ino := removed(tr, "f")
	tr.pin(here, ino).ok()
	tr.unpin(there, ino).is(storepb.Code_STALE)
	tr.pass(time.Hour)
	require.Equal(t, "held", tr.content(ino))
	tr.ns = restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	tr.pass(time.Hour)
	tr.write(here, ino, "mine").ok()
	tr.unpin(here, ino).ok()
	tr.pass(0)
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(ino)).GetCode())
	tr.unpin(here, ino).is(storepb.Code_STALE)
}

// TestPinnedByItsRemoval: only what the remover meant, and only if it has no other name.
func TestPinnedByItsRemoval(t *testing.T) {
	tr := newDriver(t)
	pinned, linked, another := tr.file(RootIno, "pinned"), tr.file(RootIno, "linked"), tr.file(RootIno, "another")
	tr.link(linked, RootIno, "link").ok()
	remove := func(name string, pin uint64) {
		tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte(name), Pin: pin})).ok()
	}
	remove("pinned", pinned)
	remove("linked", linked)
	remove("another", pinned)
	tr.pass(time.Hour)
	tr.write(here, pinned, "mine").ok()
	require.EqualValues(t, 1, tr.attr(linked).GetNlink())
	require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(another)).GetCode())
	tr.unpin(here, pinned).ok()

	replaced := tr.file(RootIno, "replaced")
	tr.file(RootIno, "new")
	rename := renameOp(RootIno, "new", RootIno, "replaced")
	rename.GetRename().Pin = replaced
	tr.do(here, rename).ok()
	tr.pass(time.Hour)
	tr.write(here, replaced, "mine").ok()
}

// TestUnpinLeavesTimeToReaders: the remover's close does not take the file from readers elsewhere before
// the time that they have without its pin.
func TestUnpinLeavesTimeToReaders(t *testing.T) {
	for name, let := range map[string]func(tr *driver, ino uint64){
		"unpin": func(tr *driver, ino uint64) { tr.unpin(here, ino).ok() },
		"close": func(tr *driver, _ uint64) { tr.do(here, opOf(&storepb.CloseSession{})).ok() },
		"end":   func(tr *driver, _ uint64) { tr.do(there, opOf(&storepb.EndSession{Id: here, IfActive: tr.index})).ok() },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			ino := removed(tr, "f")
			tr.pin(here, ino).ok()
			let(tr, ino)
			tr.wait(10 * time.Second)
			tr.do(there, opOf(&storepb.SetLimits{})).ok()
			require.Equal(t, "held", tr.content(ino))
			tr.wait(orphanAge)
			tr.do(there, opOf(&storepb.SetLimits{})).ok()
			require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(getAttr(ino)).GetCode())
		})
	}
}

func TestRemovedDirectory(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "d")
	tr.file(dir, "f")
	tr.rmdir(RootIno, "d").is(storepb.Code_NOT_EMPTY)
	tr.unlink(here, RootIno, "d").is(storepb.Code_IS_DIRECTORY)
	tr.rmdir(dir, "f").is(storepb.Code_NOT_DIRECTORY)
	tr.unlink(here, dir, "f").ok()
	require.Equal(t, dir, tr.rmdir(RootIno, "d").ok().GetRemovedIno())
	tr.create(dir, "f", someFile).is(storepb.Code_NOT_FOUND)
	require.Len(t, listing(tr.ns, dir, 0), 2)
	require.EqualValues(t, 2, tr.attr(RootIno).GetNlink())
}
