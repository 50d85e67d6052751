// Package lease lets a mount answer reads from its cache while no newer answer can exist anywhere. The leader
// has a [Table] of granted leases, a mount has a [Cache]. Both take the time as an argument and do nothing by
// themselves. Package cluster uses the table, package session the cache.
//
// # The promise
//
// A mount is a client of a session ([Holder]). Its lease is a time, and a set of inodes. Until that time the
// leader acknowledges no change of these inodes, and shows none, unless the mount has dropped them before. A
// mount gets inodes together with an answer about them (namespace.Keys): attributes and content belong to one
// inode, names and missing names to the directory. So a name is leased with its directory, and a change of
// any name in it ends the lease. Finer leases would not help: the kernel asks for a directory's attributes
// before each name, and these change as well.
//
// An answer from a lease is linearizable. The mount reads the answer first and its clock afterwards. If the
// lease was not over then, no change had been acknowledged or shown, and this moment is within the call. The
// cache also has the observation (token) of an answer, so the guard against removing the wrong lock works as
// with an answer from the leader.
//
// # Time
//
// A lease lasts for [Duration]. The leader counts from the grant, or from the start of the quorum round
// behind an extension, on its monotonic clock. If this clock stands still, the leader waits too long, which
// is safe. The mount does not know these times, but both are after it sent the request, at S on its
// CLOCK_BOOTTIME, which also runs while the host sleeps. So the mount counts from S.
//
// The leader holds a request for an extension until [Hold] after the last confirmation, to keep requests
// rare. Then one quorum round confirms all due leases. The reply has the time for which the request was held:
// H, on the leader's clock. The lease ends H + Duration after the request arrived. The mount counts four
// fifths of this, after S (minElapsed). The request was sent before it arrived, and a mount's clock may be
// slower by up to a fifth. So the mount's end is before the leader's, for any wall clocks.
//
// It is also before the end of a successor's wait. The successor counts Duration from its election, or from
// the last term report of a voter to the old leader, which is not before the quorum round began. So this wait
// ends after H on one clock and Duration on the other, and the mount counts four fifths of both. This
// assumes: no host's clock stands still while the others run. The clock of a paused virtual machine does.
// After the pause it may give stale answers, but for 4/5 Duration at most: no more of H counts than passed on
// its own clock.
//
// A mount has Duration * 4/5 - Hold * 6/5 = 140 ms left between two extensions, for the quorum round and the
// way to the mount. The leader may have promised more than the mount knows. So a request has the remaining
// time, and the leader extends the lease while this is at least [Slack]. If it is too short, the mount asks
// the leader for each answer until the extension arrives.
//
// The leader grants and extends only after a quorum has confirmed it in its own term, after the request was
// sent: by a confirmed read, a keepalive, or a committed command. So each promise of a deposed leader counts
// from before its successor's election, and the successor waits for [Duration] after the election. Meanwhile
// it answers nothing. Mostly the wait is shorter: voters report how long ago they last reported an earlier
// term (package cluster, termReports), and no lease outlasts such a report by more than Duration. Storing an
// entry is a report too, because a commit backs the leases in the reply to a command. These count from the
// arrival of the command, before any voter had it.
//
// The leader of the previous term, if it still answers, reports how long its leases last ([Table.Stop]). It
// had waited for all earlier ones. Afterwards it grants nothing more in its term, even before it learns of
// the new one.
//
// # Revocation
//
// A change makes the leader revoke the touched inodes. It revokes predictable inodes when the command
// arrives, in parallel to the commit, and all touched inodes when the command is applied. Until each holder
// has dropped them, or its time is over, the leader neither acknowledges the change nor answers reads of
// these inodes. Other reads go on.
//
// An answer without known inodes (lists, events, waits, locks) waits for all changes applied before it. So
// does the reply to a command without touched inodes: it may have been refused because of any change, or
// repeat an earlier command. A command also depends on limits and quotas, which may show a change a moment
// early.
//
// Before a mount sends a command, it drops the inodes which the command will probably change. The command
// lists them ([Cache.Change], [Table.Dropped]); the leader does not wait for those.
//
// A holder which does not drop in time loses its lease with all inodes, and gets nothing until its next
// request. This delays a change by one Duration at most, once: a lease with a revocation is neither extended
// nor enlarged.
//
// # Message order
//
// These rules order messages:
//
//   - The leader records a holder before it reads the answer, under one lock with the application of
//     commands. So either the answer has a change, or the holder gets a revocation.
//   - A mount does not keep an answer about an inode dropped since the question. It remembers its last drops,
//     in order. An inode from before this log counts as dropped.
//   - The number of drops is the mount's position, sent with each question for a lease and each command. The
//     list of a command counts only for leases with an earlier position. So a late or repeated command takes
//     no newer lease away.
//   - A mount with a revocation gets nothing new. So its acknowledgement covers everything.
//   - Leases belong to a generation, and each leader has larger ones. Extensions and acknowledgements count
//     for one generation: they cannot revive a lost lease, nor acknowledge a revocation of another leader.
//   - A mount drops everything when it learns of a larger generation, even if it does not keep the answer.
//     Otherwise the leader would wait for a lease unknown to the mount.
//   - A mount which releases a lease is done with this generation, even if the message is lost. Its next
//     question contains the generation and begins another. The same holds after the end of a lease.
//   - A process which takes over a session is another holder. Late messages of its predecessor do not count
//     for it.
//
// # Grants
//
// Leases are for small contents and short listings which a mount reads twice within a moment, and which have
// not changed for [QuietPeriod]. Where mounts take turns, revocations would cost more than reads. For a mount
// with several reads since the change, [MinAge] is enough: those reads have cost as much as a revocation. So
// a mount can lease a directory between frequent changes, such as the objects of a repository.
//
// The reply to a command brings leased answers to the mount's probable next questions (prefetch): about the
// names and inodes of the command, as far as it has used them lately. A recent change does not matter if no
// other mount has held or changed them. The leader omits answers which would have to wait.
//
// A mount releases an unused lease after a while, and an unused prefetch sooner, so changes do not wait for
// it.
package lease
