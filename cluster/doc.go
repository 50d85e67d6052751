// Package cluster is a voter: the leader's work, membership, cluster time and linearizable reads. Raft is assembled in package
// consensus, calls go over package rpc, and what a mount holds is package session.
//
// # Who answers
//
// The leader does every command and answers every query; other nodes name it. An [rpc.Router] follows the
// leader, on this node or another, and keeps asking until there is an answer or its time is up. It is
// the only place that retries. A command carries its session and number, so asking again is always
// safe, whatever became of the earlier attempt.
//
// # Forwarding
//
// A host may reach a quorum, and not the leader. Then it asks another voter to forward its requests ([rpc.Router] remembers the detour, and
// tries the direct way again), so a broken link between two hosts costs no session, lease or lock. A request is forwarded once: only the leader
// does a forwarded one. The forwarding voter passes on the caller's role, name and key, and the time that the caller still waits. The leader
// accepts these from a current voter only, and judges them as if the caller had called itself: admission, revocation, rights, sessions and root
// squash (authorizeForwarded). A request that was forwarded is no answer to a round of reads: the leader asks the voters itself. Keepalives, lease
// renewals and what a renewal brings back (the inodes to drop) take the same way, so leases last and are revoked on a detour too. Only if a mount
// on a detour ends, a change may wait for its lease for up to a second longer: the leader does not see that the connection has gone.
//
// What tells of one server (Status) is asked through another one, too, where the direct way is broken.
//
// A server that hears no leader asks the other voters, and names one of them that knows the leader to its callers (leaderHint). Its log gets
// nothing until the link is whole: it can serve its mount, and make no backup. Pre-vote keeps it from disturbing the others. A server whose
// calls come through another one is not removed as dead (--remove-dead).
//
// # Reads
//
// A query is answered by read index (Ongaro, Consensus: Bridging Theory and Practice, section 6.4): from the leader's own state,
// which has applied everything that it ever acknowledged. That is linearizable when (a) a new leader has first committed a barrier of its own
// term, so that it has all that its predecessors acknowledged, and (b) nobody newer had been elected
// when the query arrived. For (b) the leader asks the voters for their current terms, in rounds that
// many readers share, and needs a majority (itself included) to be still in its own term after the
// query came. A voter takes up a higher term before it grants a vote, so nobody newer had a majority.
// Itself counts as a voter only: one that is removing itself is none. Where one voter besides itself is enough, it asks one,
// and all if that one is not prompt. A query from the mount of another voter brings that one's word along: it names the term
// it was in when it was asked. A client without a node probes a voter itself, meanwhile, and compares.
//
// A system call is several requests of the kernel, and only the first has to see the newest state. Where the mount knows
// that a request continues a call, it says which command the state had applied that the last answer came from
// (Query.since), and any node that has applied it answers at once, from a state that is as new; with leases only the leader does,
// unasked for a majority's word.
//
// With leases (package lease; Config.Leases) a mount answers many reads itself. Then a change shows only once nobody holds anything of it
// any more, which the leader alone knows: it holds back what it answers (shown), no other node answers from its state, and a new
// leader waits until the leases of others are over before it answers at all: a second after the last word that voters gave to another
// (words), which after a crash is about as long ago as an election takes; or for as long as the leader of the term before says that its
// leases last, which gives none any more once it is asked, and had waited for all before it when it began ([lease.Table.Stop]). Who
// led in an earlier term than that knows nothing of who led in between. A leader that is to end for a moment, for its mount to go on in
// another program, gives none for a while before it has another one lead (Node.TransferLeadership). Whether there may be any is in the state
// (namespace.Namespace.MayLease), so that it does not depend on how servers were started. What only tells of a node itself does not
// wait: its audit trail, hashes, backups, and what it has seen removed, for which a mount drops what it holds.
//
// Two things are deliberately different from the usual. raft's VerifyLeader is not used: it counts
// any successful reply of a follower, also one to a request sent long before, so a leader that was
// frozen could confirm itself with a reply that had been waiting in its socket; so the round of heartbeats that a read index
// takes is our own (probes). And followers do not
// answer from their own state at the leader's index: they learn of a commit with the next message from
// the leader, up to twice CommitTimeout later (0.4 s when writes pause), which costs
// more than the one round trip that the leader needs to be asked for anyway.
//
// # Sessions
//
// What a mount holds is a session (package session), with a lease: the leader promises to keep it for a TTL. That
// counts from when the mount sent its last keepalive, on a clock that runs while the host sleeps, so
// the mount stops relying on it before the leader can give it up. The leader keeps the leases in memory;
// a new one, and one that was stopped itself, gives everyone a full TTL. Giving up is a command that
// does nothing to a session which has been at work since. An old session is known for a week, or until very many others have ended;
// after that a call that was under way fails, for nobody can tell whether it was done.
//
// # Members
//
// Who is one is in raft's configuration, and his address is in the state. A node that wants to join is called back at its
// address, where it and its raft must say the id that it says to have, and gets no vote until it has applied
// what was committed half a second before, and answers once more. So whoever is not reached cannot cost the cluster its majority.
// It asks until it hears that it has a vote, or why it gets none. The leader drops one that falls silent. What it remembers of
// all that is in its memory only: a new leader goes on with those without a vote that it finds (newcomers).
//
// # One process for each server
//
// Raft counts votes and copies of the log by server, so two processes with the identity of one server must not both count. Each start
// draws an instance number, which probes, raft's messages, joins and reads carry (instances).
//
// # Backups
//
// Any node makes one (package backup). It gets a read index as a reader does, waits until it has applied that, and takes a
// snapshot, which costs nothing; so nothing is missing that was acknowledged before. Who asked for it fetches it in pieces, which
// are written as they are fetched, so a node needs memory for what changes in its state meanwhile. Two are fetched at a time, and
// one that nobody goes on fetching is dropped.
//
// # Who may what
//
// A node knows a caller by what his connection proves: a certificate (package identity), or the uid of who has connected to a unix
// socket, for which a [Proxy] asks. What each may is one table (rights), which a guard in front of the node asks; what is not in it
// is nobody's. The leader, whose state has all that was acknowledged, sees besides that a host acts in its own sessions and
// under its own name only (binding). A refused call is answered, counted, and logged once.
//
// Who belongs to the cluster is in the state (package trust): the authorities, whose keys are sealed, the tokens, and the key of each
// host. A node judges a certificate by the state as far as it has it, and hangs up on who is shut out as soon as it learns of that;
// the leader ends his sessions, so his locks go the way of those of a mount that has fallen silent. Only the leader gives
// certificates (enrollment). One that is asked again gives the same, so a lost answer uses up nothing.
//
// Hosts without the state judge servers by a roster that keepalives tell (rosters), and have other servers prove their membership (ProveServer): package
// identity says why, and what that is worth against a removed server. A rotation replaces the seal key of the authority too; the state has a share of
// it for each server (office), and the leader adds shares for servers that are admitted later.
//
// The first server makes the authority before there is a state, keeps it sealed in a file, and records it once it leads (founding).
// Another authority takes over by a command; the one before vouches for it, all hosts renew by themselves (package enrolment),
// and the leader drops the old one when no host needs it any more.
//
// # Cluster time
//
// The leader stamps commands. It takes the median of the voters' wall clocks, measured every other
// second and by the same probes that confirm it, and advances it by its own monotonic clock in between. With
// an even number of known clocks the lower of the two middle ones counts, because time that is late
// keeps a lock too long and time that is early breaks one; unless that clock is over a minute behind
// the last stamp, which proves it wrong. Time that turns out to be ahead runs at half speed
// until the median has caught up; it never goes back.
//
// # Comparison of states
//
// Every few minutes the leader has all nodes hash the state after one command. Each does that in the background, by all that was in
// its memory then, and compares it with the hash that it has kept as the state changed. A voter whose state is not the majority's is
// taken out of service by an alarm in the state: it stops when it applies that, and again whenever it is started with what it
// has on disk. Where there is no majority there is only an alarm.
//
// Raft itself, with what it keeps on disk, is package consensus's.
package cluster
