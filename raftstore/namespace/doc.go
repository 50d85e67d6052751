// Package namespace holds the replicated state machine of lockfs: a POSIX tree of small files, kept in
// memory on every voter and changed only by the commands of the Raft log.
//
// [Namespace] is the state machine, a plain type: Apply takes one command and answers a result. It
// knows no clock, randomness, log, goroutine or network, so the same commands give the same state on
// every node; the time, the caller and everything that needs judgement come in with the command. An
// operation that cannot be done is a result with a code, never a panic, whatever the command holds.
//
// # What lies on what
//
// Tables hold the state (tables.go), each a thing of its own: the tree of inodes and names, with what it needs in a ledger; sessions and
// replies; hosts; rules; events; members; advisory locks; who belongs to the cluster. Above them, each knowing only those before it:
//
//   - a judge says what they mean together: what is a lock, whose, whether it is stale, and when something is due. It changes nothing;
//   - an announcer tells of what happens to locks, as events;
//   - a warden refuses what must not be done to a lock;
//   - a keeper changes names, with all that follows of it;
//   - a [Namespace] does commands (apply.go), once each.
//
// A reader answers queries, with a judge alone (query.go). A file has one of these, or one operation, and files use each other in one
// direction.
//
// # Exactly once
//
// A mount opens a session and numbers its commands from 1. The state keeps the reply to each number
// until the session acknowledges it, so a command that comes twice is done once and answered twice.
// Cancel settles a number whose outcome its caller was never told: should it come later it does nothing, and what it created
// exclusively is taken back, unless somebody has changed or locked it, or wants to. Nobody gets a lock of an inode that
// was taken back. What may have been there before its caller came is not taken back: others may rely on it.
//
// # Removed files
//
// An inode without a name (an orphan) stays for at least [orphanAge], unless more than [orphanLimit] of them, or [orphanBytes],
// wait. Each session that has it open keeps it longer with a pin, until its close. All sessions read the same content, and
// what one writes the others read, as on a local disk. Pins and writes need no name.
//
// If the last name was a lock, only the session that removed it may still write. A write from any other session is STALE:
// the holder on another host learns so that it lost its lock.
//
// # Limits
//
// Inodes and names count what they need in memory, for the owner of the inode and for all together (limits.go). What somebody adds is
// refused with QUOTA where the owner's share is used up, and with NO_SPACE where all is, a reserve for root apart. What adds
// nothing is never refused. What is forgotten soon counts for nobody, and is forgotten sooner the larger it is.
//
// A quota bounds what there may be in one directory, at any depth (quotas.go): its names, each with its inode, whoever they belong to.
// What it has used is kept as names come, go and grow, and moves with a directory that is renamed.
//
// # Locks
//
// Names are of three classes. An exclusive name was created exclusively (O_EXCL, mkdir, link, symlink, rename with NOREPLACE) and not
// replaced by an ordinary rename since: it has a token and a maker, whatever its content. A lock is subject to guards, looks and events: a
// rule says so, its content is of a format, or it is exclusive and has two pieces of evidence ([lockfact.Evidence]): it is empty, its
// content names the writer's host, a pid of the writer's family or the time, a word of its name or of its directory's name says lock. Under such a
// name a short content is a piece too: "taken". A directory that was created exclusively is a lock for the locks in it, too. Everything else is
// data, and behaves as on a local disk; so does a file that several hosts append to, whatever stands in its lines.
//
// A file that ever had more names than a lock may have (manynames.go) is data for good: no command visits its names.
//
// The mount finds the evidence in names and contents; the state machine counts it, and never reads a content. What a name says is kept with
// it, and what its directory's name said at that time, so renaming the directory changes nothing.
//
// A rule that removes (on-stale remove, or holder creator) applies only to a name that is a lock without it, on evidence that does not
// include a short content; unless it says that it is for any file. So '*.lock' does not remove yarn.lock. A file that was data when its creator
// ended has no creator any more.
//
// A file that has or ever had an advisory lock or a request for one is guarded by that alone: its content
// is data, and it is never removed here, since whoever waits for its lock waits for that inode. On a file with a known holder only advisory
// locks of the holder's process family count; others postpone a removal while they are held or waited for (counts.go). A look at a lock still counts
// when what is there now was made exclusively and has nothing to judge: not every lock tells of its holder.
//
// What a content says about its lock is worked out by whoever proposes it, without any rule, and comes with
// the command ([storepb.Facts]). The state machine adds what it knows: the rule for the path of each name
// ([lockfact.Rule.Govern], arithmetic that is the same for ever), the time, and which hosts and processes
// are gone. Facts belong to an inode; token, staleness and rule belong to a name, for an inode may have
// several.
//
// With every command those locks become stale whose time is over by the command's own time, so nobody has
// to propose it against a version that may have changed: the leader sends a Tick when it sees that one is
// due, and the state machine decides. A process that is gone is gone for every version of a lock. It is
// told by the mount of its host, or follows from a boot of that host, or from an administrator's word.
//
// A crash (a signal, or the end of the host) frees a lock of format pid that was made exclusively. A process that exits by itself leaves
// its lock, stale and in place, and so does one whose end is not known: the lock may be a marker, or held for another program. The
// first recorded end of a process counts. Beads, --holder creator and --on-stale remove free the lock after any end.
//
// The token of a name is the index of the command that gave it its present holder. It changes when a free
// name is taken, and when content or a rename brings another holder than the last one known. While the
// content does not tell, the holder known before counts: to truncate and write is no way around it.
//
// A removal or replacement is refused that was decided on another lock of that name (the command tells what
// its caller saw), or on a lock that was still empty when it was seen, and while a live lock's guard says
// no. The guard "host" lets those pass who could have judged: on that host and machine, and in a pid namespace from which
// the holder's process is seen, if a mount watches that. The guard "owner" lets those remove it who bring its holder's name. For a few seconds after a lock was
// emptied it stays a lock and keeps its guard: its holder is about to write.
// A file without a known holder that is replaced by rename keeps its token, so of two programs that break
// such a lock by renaming over it both succeed, as on a local disk; one that removes and creates is safe.
//
// # Advisory locks
//
// flock(2) and fcntl(2) locks belong to owners, which are numbers within a session. A request that must wait
// stays in the queue of its file and becomes a lock by itself, with the command that makes it possible; its
// mount awaits that ([Namespace.AwaitLock]). It waits for earlier requests too that exclude it, so nobody starves;
// one that was interrupted keeps its place for a moment but gets nothing. Where the programs of a mount may
// go on without knowing that their locks are lost, nobody gets these before the lock delay is over. A session may
// say when it begins that nobody relies on its locks like that; then they go with it.
//
// What a request for a lock has done is never undone. If nobody was told what became of one, its mount drops what the owner has.
//
// # Events
//
// Everything that happens to locks is an event, numbered in the order of the log. The last ones are part of
// the state. lock_acquired comes up to a second late where more may follow that belongs to the same acquisition: content for an
// empty file, a link or a rename to its real name, a file in a directory; nothing else is told of the name before. Files that
// lockfs makes for itself are unlisted: they are files like others but no locks, so nothing is told of them.
//
// # Who is told
//
// The kernel of a mount judges who may do what with a file; only queries for many at once are judged here, by who asks
// ([storepb.Viewer]): whether he could reach a lock by its path and stat it, and read it. An event notes the directory that it
// happened in and the permissions that the file had then. A mount is believed who asks.
//
// # Who belongs to the cluster
//
// Authorities, join tokens and hosts are a table of their own (package trust) that only the leader's own commands change; sealed keys and
// hashes of secrets are in no answer to a query. Every change is an event. Root of a host may be nobody here ([storepb.Caller]): then what
// it changes is judged as for an ordinary user (squash.go), as no kernel has done so.
//
// # What changes
//
// What a command has touched can be told ([Namespace.Touched]), by inodes: their attributes and content, their names, and the names in
// them. It is noted where tables change. What the answer to a query says something of are inodes, too ([Keys]).
//
// # Snapshots
//
// The state lives in copy-on-write B-trees, so taking a snapshot is a copy of a few pointers and never
// stalls Apply; the nodes that change afterwards are copied by the one that changes them. For that
// reason no value in a tree is ever modified: it is replaced.
//
// The hash of the state is a sum over its records (package digest), kept as they come and go; a snapshot brings it along. What it should
// be can be worked out from a frozen copy: if it differs, memory has changed by itself.
package namespace
