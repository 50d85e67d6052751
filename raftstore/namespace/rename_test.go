package namespace

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestRenameRules(t *testing.T) {
	tr := newDriver(t)
	a, full, empty := tr.mkdir(RootIno, "a"), tr.mkdir(RootIno, "full"), tr.mkdir(RootIno, "empty")
	tr.file(full, "f")
	tr.file(RootIno, "file")
	inside := tr.mkdir(a, "inside")

	tr.rename(RootIno, "a", RootIno, "full").is(storepb.Code_NOT_EMPTY)
	tr.rename(RootIno, "a", RootIno, "file").is(storepb.Code_NOT_DIRECTORY)
	tr.rename(RootIno, "file", RootIno, "empty").is(storepb.Code_IS_DIRECTORY)
	tr.rename(RootIno, "a", a, "self").is(storepb.Code_INVALID)
	tr.rename(RootIno, "a", inside, "deep").is(storepb.Code_INVALID)
	tr.rename(a, "inside", RootIno, "a").is(storepb.Code_NOT_EMPTY)
	tr.exchange(RootIno, "a", a, "inside").is(storepb.Code_INVALID)
	tr.exchange(a, "inside", RootIno, "a").is(storepb.Code_INVALID)
	tr.exchange(RootIno, "a", RootIno, "missing").is(storepb.Code_NOT_FOUND)
	tr.rename(RootIno, "missing", RootIno, "x").is(storepb.Code_NOT_FOUND)
	tr.rename(RootIno, "a", RootIno, "..").is(storepb.Code_INVALID)
	tr.renameNoReplace(RootIno, "a", RootIno, "empty").is(storepb.Code_EXISTS)
	tr.renameNoReplace(RootIno, "a", RootIno, "a").is(storepb.Code_EXISTS)
	tr.renameNoReplace(RootIno, "a", full, "f").is(storepb.Code_EXISTS)
	tr.rename(RootIno, "a", RootIno, "a").ok()
	both := renameOp(RootIno, "a", RootIno, "full")
	both.GetRename().NoReplace, both.GetRename().Exchange = true, true
	tr.do(here, both).is(storepb.Code_INVALID)

	require.Equal(t, empty, tr.rename(RootIno, "a", RootIno, "empty").ok().GetRemovedIno())
	require.Equal(t, a, tr.at(RootIno, "empty"))
	tr.create(empty, "f", someFile).is(storepb.Code_NOT_FOUND)
	require.EqualValues(t, 4, tr.attr(RootIno).GetNlink())
	requireConsistent(t, tr.ns)
}

func TestRenameBetweenNamesOfOneInode(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "a")
	tr.link(ino, RootIno, "b").ok()
	require.Zero(t, tr.rename(RootIno, "a", RootIno, "b").ok().GetRemovedIno())
	require.Equal(t, []string{"a", "b"}, tr.names())
	require.EqualValues(t, 2, tr.attr(ino).GetNlink())
	tr.renameNoReplace(RootIno, "a", RootIno, "b").is(storepb.Code_EXISTS)
}

func TestRenameReplacesOneOfTwoNames(t *testing.T) {
	tr := newDriver(t)
	old := tr.file(RootIno, "lock")
	tr.link(old, RootIno, "other").ok()
	tr.file(RootIno, "tmp")
	require.Zero(t, tr.rename(RootIno, "tmp", RootIno, "lock").ok().GetRemovedIno(), "it has a name still")
	require.EqualValues(t, 1, tr.attr(old).GetNlink())
	tr.file(RootIno, "tmp")
	require.Equal(t, old, tr.rename(RootIno, "tmp", RootIno, "other").ok().GetRemovedIno())
}

func TestExchangeMovesDirectories(t *testing.T) {
	tr := newDriver(t)
	a, b := tr.mkdir(RootIno, "a"), tr.mkdir(RootIno, "b")
	dir, file := tr.mkdir(a, "x"), tr.file(b, "y")
	tr.exchange(a, "x", b, "y").ok()
	require.Equal(t, []uint64{file, dir}, []uint64{tr.at(a, "x"), tr.at(b, "y")})
	require.Equal(t, b, tr.at(dir, ".."))
	require.EqualValues(t, 2, tr.attr(a).GetNlink())
	require.EqualValues(t, 3, tr.attr(b).GetNlink())
	requireConsistent(t, tr.ns)
}

func TestRenameTimes(t *testing.T) {
	tr := newDriver(t)
	a, b := tr.mkdir(RootIno, "a"), tr.mkdir(RootIno, "b")
	ino := tr.file(a, "f")
	before := tr.attr(ino)
	tr.rename(a, "f", b, "g").ok()
	after := tr.attr(ino)
	require.Equal(t, tr.now, after.GetCtime())
	require.Equal(t, before.GetMtime(), after.GetMtime())
	require.Equal(t, before.GetVersion(), after.GetVersion())
	for _, dir := range []uint64{a, b} {
		require.Equal(t, []int64{tr.now, tr.now}, []int64{tr.attr(dir).GetMtime(), tr.attr(dir).GetCtime()})
	}
}

// TestDepthLimit: 64 directories below one another, however they come there.
func TestDepthLimit(t *testing.T) {
	tr := newDriver(t)
	chain := tr.chain(RootIno, MaxDepth)
	last := chain[MaxDepth-1]
	tr.create(last, "d", someDir).is(storepb.Code_NAME_TOO_LONG)
	tr.file(last, "f")
	tr.file(RootIno, "file")
	tr.rename(RootIno, "file", last, "file").ok()

	two := tr.mkdir(RootIno, "two")
	tr.mkdir(two, "levels")
	tr.rename(RootIno, "two", chain[MaxDepth-2], "two").is(storepb.Code_NAME_TOO_LONG)
	tr.exchange(RootIno, "two", chain[MaxDepth-2], "d").is(storepb.Code_NAME_TOO_LONG)
	tr.rename(RootIno, "two", chain[MaxDepth-3], "two").ok()
	tr.rename(RootIno, "d", chain[0], "x").is(storepb.Code_INVALID)
	requireConsistent(t, tr.ns)
	restored(t, snapshotBytes(t, tr.ns.Snapshot()))
}

func TestDirectoryMovesWithItsTree(t *testing.T) {
	tr := newDriver(t)
	a, b := tr.mkdir(RootIno, "a"), tr.mkdir(RootIno, "b")
	sub := tr.mkdir(a, "sub")
	f := tr.create(sub, "f", syscall.S_IFIFO|0o600).ok().GetAttr().GetIno()
	tr.rename(a, "sub", b, "sub").ok()
	require.Equal(t, f, tr.at(tr.at(b, "sub"), "f"))
	require.Equal(t, b, tr.at(sub, ".."))
	require.EqualValues(t, 2, tr.attr(a).GetNlink())
}
