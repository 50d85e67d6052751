// Package mutants builds lockfs with changes that only tests want: faults that a test has to find, hooks that reach rare moments, and a
// next version. The sources of the program know nothing of them. The changes are patches below this folder, and the Go compiler gets the changed files as
// an overlay (go help build), by which one program has all of them:
//
//	go build $(go run ./test/mutants/overlay DIR) ./cmd/lockfs
//
// Package mutant says at run time which fault the program has: LOCKFS_TEST_FAULT=no-dedup. Without such a variable it works as the
// program without changes.
//
// # A patch
//
// The first line says what goes wrong. Then come changes, each with the package that it is of:
//
//	a command that arrives twice is applied twice
//
//	--- raftstore/namespace
//	 	if cmd.GetSession() == 0 {
//	-		return first
//	+		return mutant.Without(first)
//
// Lines that begin with a space or "-" have to stand in exactly one place of the package's files, one after the other; a patch has as
// few of them as are needed. Those with "-" go, and those with "+" come. If the place is not found, because the sources have changed,
// no program is built, and the error names patch and change: write the patch anew. A patch knows no names of files, so files can be
// renamed and cut. A file that a patch changes imports package mutant without a line for that.
//
// After "---" there may also be one file, and after "+++" is a file that comes with the patch.
//
// # The next version
//
// The set "next" makes the program of a next version of clusters, with an operation, a query and a field of snapshots that this version does
// not know. Tests with the build tag "next" go with it.
package mutants
