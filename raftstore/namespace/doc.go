// Package namespace is the replicated state machine of lockfs: a POSIX tree of small files. Every voter keeps
// it in memory, and only the commands of the Raft log change it.
//
// [Namespace] is a plain type: Apply takes a command and returns a result. It knows no clock, randomness,
// log, goroutine or network, so the same commands give the same state on every node. The command brings the
// time, the caller and everything else that needs judgement. An operation that cannot be done returns a
// result with a code. It never panics, whatever the command holds.
//
// # Layers
//
// Independent tables hold the state (state.go): the tree of inodes and names with its usage, sessions and
// replies, hosts, rules, events, members, advisory locks, and trust. Each layer above them knows only the
// layers before it:
//
//   - the evaluator works out which names are locks, their holders, staleness and due times; it changes
//     nothing;
//   - the event writer writes events of locks;
//   - the guard (guard.go) refuses changes of locks;
//   - the [Namespace] changes names, updates everything derived from them, and applies each command once
//     (apply.go).
//
// A query engine answers queries with an evaluator alone (query.go). A file has one layer or one operation,
// and files use each other in one direction.
//
// # Exactly once
//
// A mount opens a session and numbers its commands from 1. The state keeps the reply to each number until the
// session acknowledges it. A repeated command gets the first reply and changes nothing.
//
// Cancel settles a number with an unknown outcome. If the command comes later, it does nothing. If it created
// a name exclusively, Cancel removes the name, unless a process has changed or locked the inode or requested
// a lock. No process gets a lock of a removed inode. Cancel never removes a name that may have existed
// before: other programs may rely on it.
//
// # Removed files
//
// An inode without a name (an orphan) stays for at least [orphanAge], unless more than [orphanLimit] orphans
// or [orphanBytes] wait. Each session with an open descriptor keeps it longer with a pin, until the close.
// All sessions read the same content and see each other's writes, as on a local disk. Pins and writes need no
// name.
//
// If the last name was a lock, only the session that removed it may still write. A write from another session
// returns STALE, so a holder on another host learns of the loss of its lock.
//
// # Limits
//
// Inodes and names count their memory, for the owner of the inode and for all users together (limits.go). An
// addition beyond the owner's share returns QUOTA, and one beyond the whole returns NO_SPACE. Root has a
// reserve. An operation that adds nothing is never refused. Orphans without a pin count for no user, and
// expire sooner the larger they are together.
//
// A quota bounds the names in one directory, at any depth, each with its inode, whoever owns it (quota.go).
// Its usage follows each change of a name, and moves with a renamed directory.
//
// # Locks
//
// Names are of three classes:
//
//   - An exclusive name was created exclusively: by O_EXCL, mkdir, link, symlink or rename with NOREPLACE.
//     It has a token and a creator until an ordinary rename replaces it, whatever its content.
//   - A lock is subject to guards, observations and events. A rule makes a name a lock, or its content is
//     of a format, or the name is exclusive and has two pieces of evidence ([lockfact.Evidence]).
//   - All other names are data, and behave as on a local disk.
//
// Evidence is: an empty file; the writer's host, a pid of its process family or the time in the content; a
// word for "lock" in the name or the directory's name. Under such a name a short content ("taken") is
// evidence too. An exclusively created directory is a lock if it contains locks. A file to which several
// hosts append is data, whatever its lines say. A file that ever had more names than a lock may have
// (manynames.go) is data for good, and no command visits its names.
//
// The mount finds the evidence in names and contents. The state machine counts it and never reads a content.
// An entry stores the evidence of its name and of its directory's name, so renaming the directory changes
// nothing.
//
// A rule that removes (on-stale remove, or holder creator) applies only to names that are locks without it. A
// short content is no evidence then, unless the rule is for any file. So '*.lock' does not remove yarn.lock.
// A file that was data at the end of its creator has no creator any more.
//
// A file that has or had an advisory lock or a request is guarded by that lock alone. Its content is data,
// and lockfs never removes it, since waiters wait for that inode. On a file with a known holder, only
// advisory locks of the holder's process family count. Other advisory locks postpone a removal
// (kernellockholder.go). An observation of a lock still counts if the present file was created exclusively
// and its content names no holder.
//
// The proposer reads the facts of a content ([storepb.Facts]) without any rule, and sends them with the
// command. The state machine adds the rule for the path ([lockfact.Rule.Govern], which never changes), the
// time, and the ends of hosts and processes. Facts belong to an inode. Token, staleness and rule belong to a
// name, since an inode may have several.
//
// With every command, locks become stale that have expired by the command's time. So no proposal depends on a
// version of a lock: the leader sends a Tick when a lock is due, and the state machine decides. The end of a
// process holds for every version of a lock. The mount of its host reports it, or it follows from a boot of
// the host or from an administrator's command.
//
// A crash (a signal, or the end of the host) frees an exclusively created lock of format pid. After an exit,
// or an end of an unknown kind, the lock becomes stale and stays: it may be a marker, or held for another
// program. The first recorded end of a process counts. Beads, --holder creator and --on-stale remove free the
// lock after any end.
//
// The token of a name is the index of the command that gave the name its present holder. It changes when a
// free name is taken, and when content or a rename brings another holder than the last known one. While the
// content names no holder, the previous holder counts, so truncating and writing does not bypass a guard.
//
// The guards refuse a removal or replacement in three cases. The caller observed another lock of that name.
// The observed lock was still empty. Or the guard of a live lock does not allow it:
//
//   - The guard "host" allows callers on the same host and machine. If a mount watches the pid namespace of
//     the holder's process, the caller's pid namespace must see that process.
//   - The guard "owner" allows callers that give the holder's name.
//
// For a few seconds after a lock was emptied it stays a lock with its guard, since its holder is about to
// write. A file without a known holder keeps its token when a rename replaces it. So two programs that both
// break such a lock by rename both succeed, as on a local disk. Removing and creating it is safe.
//
// # Advisory locks
//
// flock(2) and fcntl(2) locks belong to owners, which are numbers within a session. A request that must wait
// stays in the queue of its file, and the command that frees the range makes it a lock. Its mount awaits the
// lock ([Namespace.AwaitLock]). A request also waits for conflicting earlier requests, so no request starves.
// An interrupted request keeps its place for a moment, but gets nothing.
//
// When programs of a mount may continue without knowing of the loss of their locks, these stay reserved for
// the lock delay. A session may declare at its begin no program relies on them; then they end with it.
//
// Nothing reverts the effect of a lock request. If its reply was lost, the mount drops all locks of the
// owner.
//
// # Events
//
// All changes of locks are events, numbered in the order of the log. The state keeps the last ones.
// lock_acquired comes up to a second late if more steps of the same acquisition may follow: content for an
// empty file, a link or rename to the final name, a file in a directory. The earlier name has no other
// events. Unlisted files, which lockfs makes for itself, are no locks and have no events.
//
// # Visibility
//
// The kernel of a mount checks permissions on files. The state machine checks them for queries about many
// files, by the user who asks ([storepb.Viewer]): could the user reach the lock by its path, stat it and read
// it? An event records its directory and the permissions of the file at that time. The state machine trusts
// the mount on the identity of the user.
//
// # Membership
//
// Authorities, join tokens and hosts are in a table of their own (package trust), which only the leader's own
// commands change. Answers to queries contain no sealed keys and no hashes of secrets. Every change is an
// event. If root of a host is squashed ([storepb.Caller]), its changes are checked as for an ordinary user
// (rootsquash.go), since its kernel has not done so.
//
// # Touched inodes
//
// [Namespace.Touched] returns the inodes with changed attributes, content, names or entries. The tables
// record each change. [Keys] returns the inodes on which the answer to a query depends.
//
// # Snapshots
//
// The state is in copy-on-write B-trees. A snapshot copies a few pointers and never stalls Apply; later
// changes copy the nodes they change. So a value in a tree is never modified, only replaced.
//
// The hash of the state is a sum over its records (package digest), updated with each change and stored in
// the snapshot. A frozen copy can be hashed again: if the sums differ, memory has changed by itself.
package namespace
