// Package lockhistory checks whether the events of locks are possible. It needs no state of a cluster and
// trusts none: the events must be consistent by themselves.
//
// # The model
//
// A lock is a name in a directory, whatever the path of the directory at the time. In the order of the log,
//
//   - exclusion: a name is acquired only while it has no holder, and a release, a theft or a removal is of
//     its current holder;
//   - tokens rise: the token of each new holder is larger than all before;
//   - no removal of a live lock: lockfs removes only a lock with an earlier event of staleness, or on a
//     caller's removal by force;
//   - every expiry has its evidence: a past time, or an ended process or host.
//
// The state before the first event of a name is unknown, so that event is accepted. The same holds after
// missing events.
//
// [Contradiction.Piece] is the smallest part that is impossible by itself: a sequence of events of one name,
// judged without earlier events.
//
// # What is not checked
//
// The format of a lock decides whether a program was right to remove a lock as stale. Unusual but possible
// removals are remarks: those by force, and those of a lock without an event of staleness from another host
// than the holder's. Events do not contain requests and replies of programs; tests check those
// (test/history).
package lockhistory
