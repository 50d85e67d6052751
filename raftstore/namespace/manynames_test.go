package namespace

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// manyNamed makes a file of data with so many names.
func (tr *driver) manyNamed(names int) (ino uint64) {
	tr.says = storepb.NameSays_SAYS_DATA
	ino = tr.create(RootIno, "data", syscall.S_IFREG|0o644).ok().GetAttr().GetIno()
	tr.write(here, ino, "some data").ok()
	for i := range names - 1 {
		tr.link(ino, RootIno, fmt.Sprint("link-", i)).ok()
	}
	return ino
}

// TestLockHasFewNames: a link to a lock is refused, where data gets one.
func TestLockHasFewNames(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "lock")
	tr.requireLock(true, RootIno, "lock")
	for i := range maxLockNames - 1 {
		tr.link(ino, RootIno, fmt.Sprint("lock-", i)).ok()
	}
	before := tr.attr(ino)
	require.Contains(t, tr.link(ino, RootIno, "one-more").is(storepb.Code_TOO_MANY_LINKS).GetMessage(), "256 names")
	requireSame(t, before, tr.attr(ino))
	tr.requireLock(true, RootIno, "lock")
	tr.unlink(here, RootIno, "lock-0").ok()
	tr.link(ino, RootIno, "one-more").ok()
	requireConsistent(t, tr.ns)
}

// TestOthersLeaveNamesOfALockToItsOwner.
func TestOthersLeaveNamesOfALockToItsOwner(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "lock")
	owner := uint32(1000)
	tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Uid: &owner})).ok()
	link := func(uid uint32, name string) storepb.Code {
		return tr.byUser(uid, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte(name), Says: storepb.NameSays_SAYS_LOCK})).GetCode()
	}
	for i := range maxLockNames/2 - 1 {
		require.Equal(t, storepb.Code_OK, link(2000, fmt.Sprint("lock-", i)))
	}
	require.Equal(t, storepb.Code_TOO_MANY_LINKS, link(2000, "theirs"))
	require.Equal(t, storepb.Code_OK, link(owner, "own"))
}

// TestOthersMakeNoFileDataForGood: another user adds names while the file is data, and the owner can still make it a lock.
func TestOthersMakeNoFileDataForGood(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	ino := tr.create(RootIno, "data", syscall.S_IFREG|0o666).ok().GetAttr().GetIno()
	tr.write(here, ino, "not a lock yet").ok()
	tr.requireLock(false, RootIno, "data")
	owner := uint32(1000)
	tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Uid: &owner})).ok()
	link := func(uid uint32, name string) *storepb.Result {
		return tr.byUser(uid, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte(name), Says: storepb.NameSays_SAYS_DATA})).Result
	}
	added := 0
	for ; link(2000, fmt.Sprint("link-", added)).GetCode() == storepb.Code_OK; added++ {
		require.Less(t, added, maxLockNames)
	}
	require.Equal(t, maxLockNames/2-1, added)
	require.Contains(t, link(2000, "theirs").GetMessage(), "128 names")
	tr.fill(here, RootIno, "data", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.requireLock(true, RootIno, "data")
	require.Equal(t, storepb.Code_OK, link(owner, "lock").GetCode())
	tr.requireLock(true, RootIno, "lock")
	requireConsistent(t, tr.ns)
}

// TestContentOfAFileThatHadManyNamesCountsForQuotas, for the names that are left.
func TestContentOfAFileThatHadManyNamesCountsForQuotas(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	dir := tr.mkdir(RootIno, "dir")
	tr.do(0, opOf(&storepb.SetQuota{Path: []byte("dir"), Quota: &storepb.Quota{MaxBytes: 1 << 20}})).ok()
	ino := tr.create(dir, "link", someFile).ok().GetAttr().GetIno()
	for i := range maxLockNames + 1 {
		tr.link(ino, dir, fmt.Sprint("link-", i)).ok()
	}
	used := func() uint64 { return tr.ns.tree.below[ids.Inode(dir)].used.bytes }
	write := func(bytes int) step { return tr.write(here, ino, strings.Repeat("x", bytes)) }
	write(MaxContent).ok()
	tr.rename(RootIno, "dir", RootIno, "moved").ok()
	for i := range maxLockNames + 1 {
		names, before := uint64(maxLockNames+1-i), used()
		tr.unlink(here, dir, fmt.Sprint("link-", i)).ok()
		require.GreaterOrEqual(t, used(), uint64(MaxContent), "with %d names", names)
		require.LessOrEqual(t, used(), max(before, 2*MaxContent+2*leastInode*names), "with %d names", names)
		if i%50 == 0 {
			tr.restart()
		}
	}
	requireConsistent(t, tr.ns)
	write(10).ok()
	require.Less(t, used(), uint64(2*leastInode))
	write(MaxContent).ok()
	for i := range 2 {
		tr.write(here, tr.create(dir, fmt.Sprint("other-", i), someFile).ok().GetAttr().GetIno(), strings.Repeat("x", MaxContent)).ok()
	}
	write(10).ok()
	tr.write(here, tr.create(dir, "one-more", someFile).ok().GetAttr().GetIno(), strings.Repeat("x", MaxContent)).ok()
	write(MaxContent).is(storepb.Code_QUOTA)
	requireConsistent(t, tr.ns)
}

// TestFileWithManyNamesIsDataForGood, whatever it holds and however few names are left.
func TestFileWithManyNamesIsDataForGood(t *testing.T) {
	tr := newDriver(t)
	ino := tr.manyNamed(maxLockNames + 1)
	tr.open(3, "elsewhere", "boot").ok()
	check := func() {
		tr.fill(here, RootIno, "link-1", pidFacts(storepb.Format_PID, processOf(1))).ok()
		tr.requireLock(false, RootIno, "link-1")
		tr.fill(there, RootIno, "link-2", towerFacts("me")).ok()
		tr.says = storepb.NameSays_SAYS_LOCK
		tr.link(ino, RootIno, "a.lock").ok()
		tr.requireLock(false, RootIno, "a.lock")
		tr.do(3, renameOp(RootIno, "a.lock", RootIno, "b.lock")).ok()
		tr.fill(here, RootIno, "b.lock", nil).ok()
		tr.requireLock(false, RootIno, "b.lock")
		tr.unlink(3, RootIno, "b.lock").ok()
		requireConsistent(t, tr.ns)
	}
	check()
	tr.restart()
	check()
	for i := 3; i < maxLockNames; i++ {
		tr.unlink(here, RootIno, fmt.Sprint("link-", i)).ok()
	}
	check()
	tr.restart()
	check()
}

// TestFileWithManyNamesTakesTheNameOfALock: the holder is told that it lost the lock.
func TestFileWithManyNamesTakesTheNameOfALock(t *testing.T) {
	tr := newDriver(t)
	tr.manyNamed(maxLockNames + 1)
	tr.says = storepb.NameSays_SAYS_LOCK
	tr.take(here, "lock", towerFacts("me"))
	event := tr.lastEvent()
	tr.do(here, renameOp(RootIno, "link-5", RootIno, "lock")).ok()
	tr.requireLock(false, RootIno, "lock")
	tr.requireEvents(event, "lock_released lock")
	requireConsistent(t, tr.ns)
}

// TestKernelLockOfAFileWithManyNamesIsListed under one of them.
func TestKernelLockOfAFileWithManyNamesIsListed(t *testing.T) {
	tr := newDriver(t)
	ino := tr.manyNamed(maxLockNames + 1)
	list := func() (names []string) {
		for _, lock := range tr.ns.Query(listLocks(0, "", 0)).GetLocks() {
			names = append(names, string(lock.GetName()))
		}
		return names
	}
	flock := func(to storepb.LockType) {
		tr.do(here, opOf(&storepb.TakeLock{Ino: ino, Kind: storepb.LockKind_FLOCK, Type: to, Owner: 1, Session: here})).ok()
	}
	require.Empty(t, list())
	flock(storepb.LockType_EXCLUSIVE)
	require.Equal(t, []string{"data"}, list())
	tr.restart()
	require.Equal(t, []string{"data"}, list())
	tr.unlink(here, RootIno, "data").ok()
	require.Equal(t, []string{"link-0"}, list())
	flock(storepb.LockType_UNLOCK)
	require.Empty(t, list())
	requireConsistent(t, tr.ns)
}

// TestManyNamesUnderRandomCommands has a file with as many names as a lock may have among all others.
func TestManyNamesUnderRandomCommands(t *testing.T) {
	became := 0
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = g.often(70)
		index := ids.Index(0)
		do := func(cmd *storepb.Command) *storepb.Result {
			index++
			return ns.Apply(index, cmd)
		}
		made := do(&storepb.Command{Time: g.now, Op: opOf(&storepb.Create{Parent: RootIno, Name: []byte("data"), Mode: syscall.S_IFREG | 0o644})}).GetAttr()
		for i := range maxLockNames - 2 {
			do(&storepb.Command{Time: g.now, Op: opOf(&storepb.Link{Ino: made.GetIno(), Parent: RootIno, Name: fmt.Append(nil, "link-", i)})})
		}
		for range 1 + g.below(pick(g, 10, 20, 40)) {
			cmd := g.next()
			if g.often(40) {
				cmd.Op = opOf(&storepb.Link{Ino: made.GetIno(), Parent: pick(g, RootIno, g.dir()), Name: g.name()})
			}
			cmd = g.administer(cmd)
			t.Logf("%d: %v", index+1, cmd)
			do(cmd)
			requireConsistent(t, ns)
		}
		again := restored(t, snapshotBytes(t, ns.Snapshot()))
		requireConsistent(t, again)
		require.Equal(t, ns.Hash(), again.Hash())
		if in, found := again.tree.inode(ids.Inode(made.GetIno())); found && in.manyNames {
			became++
		}
	})
	require.NotZero(t, became, "no file became one of many names")
}
