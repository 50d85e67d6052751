// Package conformance checks, call by call, that a directory behaves as POSIX and Linux have it: errors,
// times, counts of links, permissions, names. It is about what programs that use lock files rely on, which
// is nearly everything.
//
// A [Case] is a function that uses a directory of its own. The test binary, started anew on a host
// ([Main]), does all cases in one directory, as root, and prints a [Result] for each.
//
// The same cases are done on local file systems. One that fails there is a wrong case. Where lockfs differs
// on purpose, a case says so by asking [T.Differs], and then checks what lockfs does instead: so each
// [Difference] is checked too, and one that nothing shows any more is an error of the test.
//
// Left out is what needs more than one host (the tests in package test), and flock and fcntl locks.
package conformance
