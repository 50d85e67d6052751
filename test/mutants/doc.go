// Package mutants builds lockfs with changes for tests: faults that a test must find, hooks for rare moments,
// and a next version. The program's sources have no trace of them. The changes are patches below this folder.
// The Go compiler gets the changed files as an overlay (go help build), so one program has all changes:
//
//	go build $(go run ./test/mutants/overlay DIR) ./cmd/lockfs
//
// Package mutant selects a fault at run time: LOCKFS_TEST_FAULT=no-dedup. Without such a variable the program
// works like one without changes.
//
// # A patch
//
// The first line describes the fault. Changes follow, each with its package:
//
//	a command that arrives twice is applied twice
//
//	--- raftstore/namespace
//	 	if cmd.GetSession() == 0 {
//	-		return first
//	+		return mutant.Without(first)
//
// Lines that begin with a space or "-" must appear together in exactly one place of the package's files. A
// patch has as few of them as needed. Lines with "-" are removed, lines with "+" added. If the sources have
// changed and the place is missing, the build fails and names patch and change: then adapt the patch. A patch
// names no files, so files can be renamed and split. A changed file imports package mutant automatically.
//
// "---" may also name one file, and "+++" adds a new file.
//
// # The next version
//
// The set "next" makes the program of a next cluster version, with an operation, a query and a field of
// snapshots unknown to this version. Its tests have the build tag "next".
package mutants
