// Package fault holds mistakes that lockfs can be built with, so that the tests of the program can prove
// that they would see them. Without the build tag "faults" all of them are constants that say no. With it
// the variable LOCKFS_TEST_FAULT names the one to make:
//
//	no-dedup          a command that comes twice is done twice
//	ignore-cancel     a creation that nobody was told of stays
//	apply-clock       each replica takes the time from its own clock
//	unverified-reads  any node answers queries from what it happens to know
//	late-keepalives   a keepalive that comes in the second half of its term is not counted
//	stale-cache       the kernel keeps names and attributes for some seconds
//	ignore-looks      whoever looked at another lock may remove the one that is there
//	look-at-data      a look at data counts like one at a lock
//	any-number        a number that somebody writes is a pid, whatever process that is
//	guard-locked      a file with a kernel lock is a lock for its content too, and goes with the process that it names
//
//	flip-bit          a bit flips in this node's memory when the voters are about to compare theirs
//
// Two are no mistakes, but moments that a test cannot meet otherwise:
//
//	die-answering     the process is killed when a creation's result is on its way to the kernel
//	lose-answers      a name that begins with "untold" is created, and the answer to that never comes
//
// LOCKFS_TEST_COMPARE_INTERVAL says how often the voters compare their states, LOCKFS_TEST_CERTIFICATE_VALIDITY how long the
// certificates are valid that a server gives, and LOCKFS_TEST_CLOCK_OFFSET by how much the program's wall clock is wrong: 1h is an
// hour fast.
package fault
