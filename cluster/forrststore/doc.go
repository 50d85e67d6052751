// Package forrststore keeps the locks of the Forrst atomic lock extension in a cluster: it is the
// [forrst.Store] behind the endpoints of all servers.
//
// # Files
//
// The lock of a key is the file /.forrst/NAME (see [forrst.FileName]), made exclusively and with its content
// in one command. It goes when its owner's token comes with a removal, by force, or when the state machine
// finds that it has expired: none of it needs the server that made it. Its times are cluster time.
//
// Two names beside the locks, which no key can have, are bookkeeping: they are not listed as locks. .queue is
// a file on which requests that wait hold record locks. .replies has a file for each request that was
// answered: the token of the lock that it had, and the answer. It expires after a minute at least: with the time for
// which the answer counts, or, if the call left its lock behind, with that lock.
//
// # Waiting
//
// A request that may wait first takes an exclusive record lock on one byte of .queue, which its key alone
// determines; those locks are given in the order in which they were asked for, on whatever server. Who has it
// is the next: it makes the file once it is not there, and then lets the one behind it come forward. Two keys
// may share a byte, and then wait for each other a little longer. A request that does not wait has no place in
// line, so it may find the lock free before one that waits. What is never lost with the order is exclusion: the
// file is made by one.
//
// A server that dies leaves the line when its session ends, a TTL later. Until then those behind it
// wait, as nobody knows that it is dead.
//
// # Once
//
// The answer to a request is recorded before its lock is dropped, so another attempt of it that gets
// the lock, or finds none, looks for the answer. One that finds the lock held by another attempt does not stand in line,
// and waits for whichever comes first, the answer or the end of the lock. The lock's token tells under which lock an
// answer was recorded, so it never counts for one that the same request took later.
//
// A release is an event that names its request. So one that is asked again soon succeeds again, and one that comes
// after another is told that the lock was released, for as long as the cluster keeps the event: it keeps
// the last ten thousand.
package forrststore
