// Package conformance checks call by call that a directory behaves as POSIX and Linux demand: errors, times,
// link counts, permissions, names. It covers nearly everything, because programs with lock files rely on it.
//
// A [Case] is a function with a directory of its own. The test binary, started on a host ([Main]), runs all
// cases in one directory, as root, and prints a [Result] for each.
//
// The same cases run on local file systems. A case that fails there is wrong. Where lockfs deviates on
// purpose, the case asks [T.Differs] and checks lockfs's behaviour instead. So each [Difference] is checked,
// and an unused one is an error of the test.
//
// It omits cases that need several hosts (package test), and flock and fcntl locks.
package conformance
