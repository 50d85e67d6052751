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
// A lease lasts for [Duration] from when it was granted, or from when the leader began to have it confirmed that it leads to extend it, on its
// monotonic clock, which may stand still: then it waits longer than it has to. The mount cannot know when that was, but that it was not before
// it sent the request, S on its CLOCK_BOOTTIME, which goes on while a host sleeps. So it counts from S.
//
// A request for an extension the leader holds, so that these need not come often, until [Hold] after what backs the lease so far; then it has
// it confirmed, for all at once that are due by then, and answers for how long it had held the request when that began: H, on its own
// clock. The lease is over at H + Duration after the request came, which the mount counts as four fifths of that after S (minElapsed). It was
// sent before it came, and if a mount's clock is slower than the leader's by less than a fifth, four fifths of a time have passed on it before
// that time has on the leader's: so the mount's end is before the leader's, whatever their wall clocks say. It is
// before that of a successor's wait, too: that counts Duration from an election, or from the last word that a voter gave to another leader, which
// was not before the confirmation began; until that H has passed on one clock and Duration after it on the other, and the mount counts
// four fifths of both. Assumed is that the clock of a host does not stand still while those of others go on. That of a virtual machine does when it
// is paused: one that was may answer from what has changed meanwhile, but for 4/5 Duration after that at most, for of H it counts no more than
// has passed on its own clock.
//
// So of the time that a mount counts, Duration * 4/5 - Hold * 6/5 are left from one extension to the next, 140 ms, for the confirmation and the
// way to the mount. What the leader has promised may be more than the mount has heard of. So that says how much it has left, and the leader
// extends it while that is no less than [Slack]. If that is not enough, the mount asks the leader for each answer until it hears of the extension.
//
// The leader grants and extends only what a majority confirms, after the request was sent, in its own term (a confirmed read, a
// keepalive, a command that was committed). So whatever a deposed leader has promised, also one that was frozen between the confirmation
// and its answer, counts from before the election of its successor, and is over once that has waited for [Duration] since its election.
// Until then it answers nothing. Mostly it waits less: voters tell it how long ago they gave their last word to another (package cluster,
// words), and no lease lasts for longer than a Duration after that. To store an entry is such a word, as a commit backs the leases that
// come with the answer to a command: these count from when the command came, before any voter had it.
//
// The leader of the term before, if it answers, can say for how long its leases last ([Table.Stop]), as it had waited for all that was
// promised before. From then on it promises nothing in its term, though it may not know yet that that is over: an answer that was
// confirmed before and comes to the table later gets no lease, and one that came to it sooner is counted.
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
// The mount that sends a command drops before that what it foresees the command to change, and says so with it ([Cache.Change],
// [Table.Dropped]): it need not be asked to, so nothing of it is waited for.
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
//   - What says something of an inode that a mount has dropped since it asked, it does not keep when the answer comes: its promise may be
//     what was revoked. It remembers the inodes that it dropped last, in their order; of one before these it takes it that it did.
//   - How many it had dropped is its position, which it tells with each question for which it wants a lease, and with each command, after it has
//     dropped what that changes. The leader takes from it what it gives up with a command if it asked for that at an earlier position
//     only. So a command that comes late, or twice, takes nothing away that the mount has come to hold since.
//   - A mount gets nothing new from the leader while it has not dropped what it was asked to. So when it says that it has, it holds
//     nothing of that.
//   - Holdings belong to a generation, of which each leader has its own, ever larger. An extension, or the word that something was
//     dropped, counts for its own generation only; so it cannot revive what was lost, nor confirm what another leader asks. A mount
//     that hears of a larger one drops all that it holds, also if it keeps nothing of what it hears: else the leader would wait for a lease
//     that the mount does not know of.
//   - A mount that gives everything back has done with that generation, whatever becomes of the message: with what it asks to have leased it
//     says so again, and begins another one, as it does once its lease is over.
//   - A process that goes on with the session of another one is another holder. What that one sent and comes late counts for that
//     one's holdings only, and the successor begins without any.
//
// # What is granted
//
// Little things (small content, short listings) that a mount asks for a second time within a moment, and that have not changed for a
// moment: whoever works alternately with others would pay more for revocations than for reads. For a mount that has asked several times
// since the change that moment is much shorter: it has spent on questions what a revocation costs, and is likely to ask as many again. So
// who works in a directory that others change again and again, as the objects of a repository, has a lease on it between two changes.
//
// The answer to a command brings answers to what its mount asks next, with leases: of the names and inodes that the command was about, and what it
// has used of that lately. That these have just changed does not count if no other mount has held or changed them for a moment. What
// would have to wait for others is not answered so; the command does not wait for it.
//
// A mount that has not used what it holds for a while gives it back, and sooner if that came with a command and was never asked for, so that
// a change waits for nobody who has no use for it.
package lease
