// Package cluster is a server of a cluster: the leader's work, membership, cluster time and linearizable
// reads. Package consensus assembles raft, package rpc carries calls, and package session is the part of
// a mount.
//
// # The leader answers
//
// The leader does every command and answers every query. Other nodes name the leader. An [rpc.Router]
// follows the leader and is the only place with retries: it asks until there is a reply or its time is
// up. A command carries its session and number, so a retry is always safe.
//
// # Forwarding
//
// A host may reach a quorum, but not the leader. Then the host asks another voter to forward its
// requests. [rpc.Router] remembers this detour and keeps trying the direct way. So a broken link between
// two hosts costs no session, lease or lock.
//
// A request is forwarded once: only the leader does a forwarded one. The forwarding voter passes on the
// caller's role, name and key, and the remaining time. The leader accepts this from a current voter only
// (authorizeForwarded), and then checks the caller as if it had called directly: admission, revocation,
// permissions, sessions, root squash. The reply to a forwarded probe proves nothing about reads: the
// leader asks the voters itself. Keepalives and lease renewals take the same way. If a mount on a detour
// ends, a change may wait up to one second longer for its lease, because the leader does not see the
// connection close.
//
// Status of one server is also asked through another server if the direct link is broken.
//
// A server without contact to the leader asks the other voters and names one of them to its callers
// (leaderHint). Its log stands still until the link works again; meanwhile it serves its mount but makes
// no backup. Pre-vote keeps it from disturbing the others. A server whose calls arrive through another
// one is not removed as dead (--remove-dead).
//
// # Reads
//
// A query uses a read index (Ongaro, Consensus: Bridging Theory and Practice, section 6.4). The leader
// answers from its own state, which has everything it ever acknowledged. That is linearizable under two
// conditions:
//
//   - A new leader commits a barrier of its own term first, so it has everything its predecessors
//     acknowledged.
//   - No newer leader had been elected when the query arrived. The leader asks the voters for their
//     terms, in quorum rounds shared by many readers. A majority, itself included, has to be in the
//     leader's term after the query arrived. A voter stores a higher term before it votes, so a newer
//     leader cannot have a majority.
//
// The leader counts itself only while it is a voter. If one other voter suffices, the leader asks one,
// and all of them if that one is slow. A query from the mount of another voter carries the report of that
// voter: its term at the time of the query. A client without a node probes a voter itself and compares.
//
// A system call is several kernel requests, and only the first needs the newest state. For the others the
// mount says which state its last answer came from (Query.since). Any node with that state answers at
// once. With leases only the leader does, without a quorum round.
//
// With leases (package lease; Config.Leases) a mount answers many reads itself. A change may be shown
// only after all mounts dropped the changed inodes, and only the leader knows that. So the leader holds
// back answers (leaseGate), and no other node answers from its state. A new leader waits until all
// earlier leases have expired: one second after a majority last reported an earlier term (termReports).
// After a crash an election takes about that long anyway. If the leader of the previous term still
// answers, it stops granting leases and says how long its leases last ([lease.Table.Stop]). A leader
// which is about to restart pauses its leases before it transfers leadership (Node.TransferLeadership).
// The state says whether leases may exist (namespace.Namespace.MayLease), so flags of single servers do
// not matter. Reads about a node itself do not wait: audit trail, hashes, backups, and its feed of
// removals.
//
// Two things differ from common practice. raft's VerifyLeader is not used, because it counts any
// successful reply of a follower, even one to an old request. A leader after a long pause could confirm
// itself with a reply that had waited in its socket. So probes of this package confirm the leader. And
// followers do not answer from their own state at the leader's index: they learn of a commit up to twice
// CommitTimeout later (0.4 s when writes pause), which costs more than a request to the leader.
//
// # Sessions
//
// A mount has a session (package session). The leader promises to keep it for a TTL, counted from the
// moment the mount sent its last keepalive, on a clock that runs while the host sleeps. So the mount
// stops relying on the session before the leader can end it. The deadlines are in the leader's memory. A
// new leader, and one that was stopped, gives every session a full TTL. To end a session is a command,
// without effect on a session that was active since. Ended sessions are known for a week, or until very
// many others have ended. After that, a retried call fails, because its outcome is unknown.
//
// # Members
//
// Raft's configuration has the members, the state has their addresses. The leader dials a joining node at
// its address, where the node and its raft have to name its id. The node gets its vote after it has
// applied everything committed half a second before, and has answered once more. So an unreachable node
// cannot cost the cluster its quorum. The node asks until it has a vote, or a reason for rejection. The
// leader rejects a node that stops answering. All of this is in the leader's memory: a new leader
// continues with the learners of the configuration.
//
// # One process for each server
//
// Raft counts votes and copies of the log by server, so two processes with the identity of one server
// must not both count. Each start draws an instance number. Probes, raft's messages, joins and reads
// carry it (instances).
//
// # Backups
//
// Any node makes a backup (package backup). It gets a read index, waits until it has applied that, and
// takes a snapshot, which is cheap. So the backup has everything acknowledged before. The client fetches
// it in pieces, which are written on demand. Two backups are served at a time, and an abandoned one is
// dropped.
//
// # Permissions
//
// The connection proves the caller: by a certificate (package identity), or by the uid of a process on a
// unix socket, for which a [Proxy] asks. One table (permissions) has every call, and an authorizer in
// front of the node checks it. Calls outside the table are refused. The leader also checks that a host
// acts in its own sessions and under its own name (identityCheck). A refused call is answered, counted,
// and logged once.
//
// Membership of hosts is part of the state (package trust): the certificate authorities with encrypted
// keys, the join tokens, and the key of each host. A node verifies certificates by its own state and
// closes the connections of revoked hosts. The leader ends their sessions. Only the leader issues
// certificates (certIssuer). A repeated request gets the same certificate, so a lost reply uses nothing
// up.
//
// Hosts without the state verify servers by a roster, which keepalives carry (rosters), and let other
// servers prove their membership (ProveServer). Package identity says how far that protects against a
// removed server. A rotation also replaces the seal key of the CA; the state has a share of it for each
// server (caSigner). The leader adds shares for new servers.
//
// The first server makes the CA before there is a state. It keeps the CA encrypted in a file and records
// it once it leads (bootstrapCA). A command makes another CA the signer, and the previous one vouches for
// it. All hosts renew (package certrenew), and then the leader drops the previous one.
//
// # Cluster time
//
// The leader stamps commands. Cluster time is the median of the voters' wall clocks, measured by probes
// at least every other second; in between, the leader's monotonic clock advances it. Of an even number of
// clocks the lower middle one counts: late time keeps a lock too long, early time breaks one. A clock
// more than a minute behind the last stamp is wrong and does not count. Time ahead of the median runs at
// half speed until the median has caught up. It never goes back.
//
// # Comparison of states
//
// Every few minutes the leader makes all nodes hash the state after one command. Each node hashes its
// memory in the background, and compares the result with the hash it maintains incrementally. A voter
// that differs from the majority goes out of service by an alarm in the state: it stops when it
// applies the alarm, and at each later start with the same data. Without a majority there is only an
// alarm.
package cluster
