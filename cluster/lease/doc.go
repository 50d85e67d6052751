// Package lease lets a mount answer reads from what it was told before, for as long as nobody can have been told anything else:
// the leader's [Table] of who was promised what, and a mount's [Cache]. Both are told the time and do nothing by themselves. Package
// cluster has the table, package session the cache.
//
// # The promise
//
// A mount, which is a client of a session ([Holder]), has a lease: a time until which the leader promises that of all inodes the mount
// holds, no change is acknowledged and none is shown to anybody, unless the mount has said before that it dropped them. It holds an
// inode by being told so together with an answer that says something of it. What an answer says something of are inodes
// (namespace.Keys): attributes and content of one, and the names in one, those that are not there too. So a name is leased with its
// directory, and a change of any name in it ends that. That is coarser than it could be; but the kernel asks for a directory's
// attributes before each name, and these change as well.
//
// An answer from a lease is linearizable: the mount reads what it keeps and then its clock. If its lease was not over then, no
// change of it had been acknowledged or shown by that moment, which is within the call. What comes with an answer comes from
// the cache too, so who looks at a lock is held to that look (Observation) as if the leader had answered.
//
// # Time
//
// A lease lasts for [Duration] from when its mount sent the request that began or extended it, on the mount's CLOCK_BOOTTIME, which
// goes on while a host sleeps; the mount stops a [Margin] before that. The leader counts from when the request came, which is later,
// on its monotonic clock, which may stand still: then it waits longer than it has to. So a leader's time for a mount is never over
// before the mount's, whatever their wall clocks say, if their clocks run at the same speed but for a fifth. Assumed is that the clock
// of a host does not stand still while those of others go on. That of a virtual machine does when it is paused: it may answer
// for up to the rest of a second from what has changed meanwhile.
//
// The leader grants and extends only what a majority confirms, after the request was sent, in its own term (a confirmed read, a
// keepalive). So whatever a deposed leader has promised, also one that was frozen between the confirmation and its answer, counts from
// before the election of its successor, and is over once that has waited for [Duration] since its election. Until then it answers
// nothing. Mostly it waits less: voters tell it how long ago they gave their last word to another (package cluster, words), and no
// lease lasts for longer than a Duration after that.
//
// # Revocation
//
// A change asks the holders of what it touches to drop that: of what can be foreseen when it comes to the leader, beside the commit,
// and of all that it touched when it is applied, which is definite. Until these have said that they did, or their time is
// over, neither the change is acknowledged nor an answer given that says something of the inodes it touched; other answers go on. An
// answer whose inodes are not known (of lists, events, waits and what tells of a lock) waits for all that was applied before it. So
// does the answer to a command that touched nothing: it may have been refused for a reason that lies anywhere, or be the
// repetition of one that is not told yet. What a command's success rests on besides what it touched are limits and quotas only: these
// may show a change a moment early.
//
// A holder that does not drop in time has lost its lease with all that it holds: when the leader hears of it again it begins with
// nothing, and before that it gets nothing. That costs whoever waits at most one Duration, once, for while a mount
// has been asked to drop something its lease is not extended and it gets nothing new.
//
// # Messages that overtake each other
//
// There is no order among them but this:
//
//   - The leader notes a holder before it reads what it answers, under one lock with what applies commands. So a change is in the
//     answer, or the holder is asked to drop it.
//   - What a mount asked before it was asked to drop anything, it does not keep when the answer comes: its promise may be what was
//     revoked.
//   - A mount gets nothing new from the leader while it has not dropped what it was asked to. So when it says that it has, it holds
//     nothing of that.
//   - Holdings belong to a generation, of which each leader has its own, ever larger. An extension, or the word that something was
//     dropped, counts for its own generation only; so it cannot revive what was lost, nor confirm what another leader asks. A mount
//     that hears of a larger one drops all that it holds.
//   - A mount that gives everything back has done with that generation, whatever becomes of the message.
//   - A process that goes on with the session of another one is another holder. What that one sent and comes late counts for that
//     one's holdings only, and the successor begins without any.
//
// # What is granted
//
// Little things (small content, short listings) that a mount asks for a second time within a moment, and that have not changed for a
// moment: whoever works alternately with others would pay more for revocations than for reads. A mount that has not used what it
// holds for a while gives it back, so that a change waits for nobody who has no use for it.
package lease
