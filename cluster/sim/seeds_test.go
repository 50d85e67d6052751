package sim

// kept are the seeds that are simulated each time, each for what it has shown. One that fails is added here when that is mended, with what
// it showed, and with the commit. Those that are here show mistakes of test/mutants/faults: each of those that are seen below a mount.
// A world takes a third of a second; when there are thirty, those may go that show the same as others.
var kept = []uint64{
	1,                   // late-keepalives: a session ended that its mount relied on; apply-clock: states that differ
	2,                   // ignore-cancel: a list of names that nobody has made
	4,                   // ignore-cancel: a file that is opened, and was given up
	5,                   // unverified-reads: a token that fell; no-dedup: a name that was made twice
	6,                   // unverified-reads and no-dedup: a name that was removed before
	12,                  // late-keepalives: of a mount on a host of its own
	1646342437560230723, // a follower stayed behind, that had a snapshot of the leader's and one entry behind it that was never committed
	3727268887950107998, // the same
}

// keptOfLocks are those of worlds with locks.
var keptOfLocks = []uint64{
	1, // late-keepalives: a session ended that its mount relied on
	2, // no lock delay
	3, // serve-gone: a lock that nobody has any more
}
