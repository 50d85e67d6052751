package namespace

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// filledDir makes a directory with so many files of one kind in it.
func (tr *driver) filledDir(name string, files int, create func(dir uint64, file string)) {
	dir := tr.mkdir(RootIno, name)
	for i := range files {
		create(dir, fmt.Sprint("file-", i))
	}
}

// TestDirectoryWithManyLocksStays, and one with many other files does not.
func TestDirectoryWithManyLocksStays(t *testing.T) {
	tr := newDriver(t)
	tr.filledDir("dir", maxMoved, func(dir uint64, file string) {
		tr.create(dir, file, someFile).ok()
		tr.fill(here, dir, file, pidFacts(storepb.Format_PID, processOf(1))).ok()
	})
	dir := tr.at(RootIno, "dir")
	tr.do(here, renameOp(RootIno, "dir", RootIno, "moved")).ok()
	tr.requireRefused(there, renameOp(RootIno, "moved", RootIno, "again"), storepb.Code_BUSY)
	tr.create(dir, "one-more", someFile).ok()
	tr.fill(here, dir, "one-more", pidFacts(storepb.Format_PID, processOf(1))).ok()
	refused := tr.do(here, renameOp(RootIno, "moved", RootIno, "again")).is(storepb.Code_BUSY)
	require.Contains(t, refused.GetMessage(), "1025 locks")
	tr.unlink(here, dir, "one-more").ok()
	tr.do(here, renameOp(RootIno, "moved", RootIno, "again")).ok()

	tr.says = storepb.NameSays_SAYS_DATA
	tr.filledDir("data", maxMoved+1, func(dir uint64, file string) { tr.create(dir, file, someFile).ok() })
	tr.do(there, renameOp(RootIno, "data", RootIno, "moved")).ok()
	requireConsistent(t, tr.ns)
}

// TestDirectoryStaysWhereOtherRulesCount for many names below; with the same rules it moves.
func TestDirectoryStaysWhereOtherRulesCount(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	for _, pattern := range []string{"*.lock", "**/run/*.pid", "to/**", "/from/*/x"} {
		tr.rule(&storepb.Rule{Pattern: pattern, Guard: "anyone"}).ok()
	}
	for _, dir := range []string{"from", "to", "other", "another"} {
		tr.mkdir(RootIno, dir)
	}
	from, to, other, another := tr.at(RootIno, "from"), tr.at(RootIno, "to"), tr.at(RootIno, "other"), tr.at(RootIno, "another")
	tr.filledDir("dir", maxMoved+1, func(dir uint64, file string) { tr.create(dir, file, someFile).ok() })
	tr.do(here, renameOp(RootIno, "dir", other, "dir")).ok()
	tr.do(here, renameOp(other, "dir", another, "dir")).ok()
	for _, dir := range []uint64{from, to} {
		refused := tr.do(here, renameOp(another, "dir", dir, "dir")).is(storepb.Code_OTHER_RULES)
		require.Contains(t, refused.GetMessage(), "1025 names")
	}
	tr.mkdir(to, "empty")
	tr.do(here, opOf(&storepb.Rename{Parent: to, Name: []byte("empty"), NewParent: another, NewName: []byte("dir"), Exchange: true})).is(storepb.Code_OTHER_RULES)
	tr.unlink(here, tr.at(another, "dir"), "file-7").ok()
	tr.do(here, renameOp(another, "dir", to, "dir")).ok()
	requireConsistent(t, tr.ns)
	tr.deleteRule("to/**").ok()
	tr.do(here, renameOp(to, "dir", other, "dir")).ok()
	requireConsistent(t, tr.ns)
}

// TestExchangedDirectoriesKeepTheGuardsBelowThem: no other host renames the directory above them, whatever was exchanged.
func TestExchangedDirectoriesKeepTheGuardsBelowThem(t *testing.T) {
	for name, exchange := range map[string]func(tr *driver, above uint64){
		"of one directory": func(tr *driver, above uint64) {
			tr.exchange(above, "locks", above, "other").ok()
		},
		"of one directory, named the other way": func(tr *driver, above uint64) {
			tr.exchange(above, "other", above, "locks").ok()
		},
		"of two directories": func(tr *driver, above uint64) {
			tr.mkdir(above, "in")
			tr.exchange(above, "locks", tr.at(above, "in"), "nothing").is(storepb.Code_NOT_FOUND)
			tr.mkdir(tr.at(above, "in"), "nothing")
			tr.exchange(above, "locks", tr.at(above, "in"), "nothing").ok()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			above := tr.mkdir(RootIno, "above")
			tr.mkdir(above, "other")
			locks := tr.mkdir(above, "locks")
			tr.create(locks, "lock", someFile).ok()
			tr.fill(here, locks, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
			tr.requireRefused(there, renameOp(RootIno, "above", RootIno, "moved"), storepb.Code_BUSY)
			exchange(tr, above)
			requireConsistent(t, tr.ns)
			tr.requireRefused(there, renameOp(RootIno, "above", RootIno, "moved"), storepb.Code_BUSY)
			tr.restart()
			tr.requireRefused(there, renameOp(RootIno, "above", RootIno, "moved"), storepb.Code_BUSY)
			tr.rename(RootIno, "above", RootIno, "moved").ok()
			requireConsistent(t, tr.ns)
		})
	}
}
