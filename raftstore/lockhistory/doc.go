// Package lockhistory judges what is told of locks: events of the audit trail, and calls that mounts recorded. It needs no state of a
// cluster and trusts none: what is told has to make sense by itself.
//
// # The model
//
// A lock is a name in a directory, whatever the path of the directory was at the time. In the order of the log,
//
//   - exclusion: a name is acquired only while nobody has it, and ends (released, stolen, removed) for the one who has it;
//   - tokens rise: each new holder's is larger than all before;
//   - no removal of a live lock: lockfs takes away only what was told to be stale before, or what somebody removed by force;
//   - every expiry has its evidence: a time that was over, a process or a host that is gone.
//
// What was before the first event of a name is not known, so that event is believed.
//
// Calls of programs are operations too ([lockjson.Call]): a name that a program was told to have made, or removed, within an interval of
// time. One that an event tells of says when that event was; one that no event tells of (it was data, or calls of other hosts were
// not recorded) must have been possible at some moment within its interval. Locks of flock and fcntl are in no event; calls
// alone say who had them, and only between the answer to a lock and the call that gave it up.
//
// Package linear looks for an order of all that. If there is none, [Contradiction.Piece] is the smallest part that has none either: a stretch of
// the events of one name, judged as if nothing was known before it, and the calls that matter.
//
// # What is not judged
//
// Whether a program was right to remove a lock that it thought stale is the business of its format. Removals that are unusual but
// possible are remarks: by force, and from another host than the holder's while nothing told that the lock was stale.
package lockhistory
