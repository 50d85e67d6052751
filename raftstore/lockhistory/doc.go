// Package lockhistory checks whether the events of locks can have happened. It has no state of a cluster and trusts none: the events have to
// make sense by themselves.
//
// # The model
//
// A lock is a name in a directory, whatever the path of the directory was at the time. In the order of the log,
//
//   - exclusion: a name is acquired only while it has no holder, and a release, a theft or a removal is of its current holder;
//   - tokens rise: the token of each new holder is larger than all before;
//   - no removal of a live lock: lockfs removes only a lock that an event called stale before, or that a caller removed by force;
//   - every expiry has its evidence: a time that was over, a process or a host that is gone.
//
// The log does not say what was before the first event of a name, so that event is believed. The same holds after events that are missing.
//
// [Contradiction.Piece] is the smallest part that is impossible by itself: a stretch of the events of one name, judged as if nothing was known
// before it.
//
// # What is not checked
//
// Whether a program was right to remove a lock that it thought stale is the business of its format. Removals that are unusual but
// possible are remarks: by force, and from another host than the holder's while no event calls the lock stale. What programs asked and were
// answered is in no event; tests check that (test/history).
package lockhistory
