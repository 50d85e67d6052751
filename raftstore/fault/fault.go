// Package fault holds mistakes that lockfs can be built with, so that the tests of the program can prove
// that they would see them; test/mistakes has those that are to see each. Without the build tag "faults" all
// of them are constants that say no. With it the variable LOCKFS_TEST_FAULT names the one to make:
//
//	no-dedup          a command that comes twice is done twice
//	ignore-cancel     a creation that nobody was told of stays
//	apply-clock       each replica takes the time from its own clock
//	unverified-reads  any node answers queries from what it happens to know
//	late-keepalives   a keepalive that comes in the second half of its term is not counted
//	stale-cache       the kernel keeps names and attributes for some seconds
//	ignore-looks      whoever looked at another lock may remove the one that is there
//	look-at-data      a look at data counts like one at a lock
//	any-number        a number that somebody writes is a pid, whatever process that is
//	guard-locked      a file with a kernel lock is a lock for its content too, and goes with the process that it names
//
//	any-term          a voter's word counts for a read, whatever term it was given in
//	old-silence       who is elected again counts the silence of mounts from when it led before
//	end-active        a session is ended although its mount has been heard of since
//	reborn-session    a session that has ended is opened anew under its number, and what was done in it is forgotten
//	no-lock-delay     advisory locks of a mount that is lost go at once
//	undo-others       what is taken back goes with what others have made of it since
//	stale-early       a lock is stale at its last instant, and not after that
//	leader-clock      cluster time is the leader's clock
//	deaf-heartbeat    a heartbeat of the same holder is not counted
//	missed-end        a lock that comes between a look at it and the wait for it is missed
//	rename-over       what a rename replaces is not guarded
//	truncate-unseen   who truncates a lock need not have looked at the one that is there
//	queue-jump        who waits for an advisory lock does not wait for those who came before him
//	serve-gone        who waits for an advisory lock gets it after his session has ended
//	forget-replies    what commands were answered is not in snapshots
//	reuse-inodes      after a snapshot inode numbers go on from the highest that is there
//	believe-torn      a batch of the log is believed whatever its checksum says
//	term-before-log   a term and a vote are on disk before the log of the term before
//	early-vote        a newcomer gets its vote as soon as it answers
//	removed-vote      a leader that is removing itself counts itself among the voters
//	forget-pending    who takes a session over does not know which calls were under way
//	retake-numbers    who takes a session over numbers its calls as its journal says, though that may be behind
//	propose-early     what a version has added is proposed before the cluster is raised to it
//	host-from-message whom a command is of says the command, and not the certificate of who sends it
//	admit-revoked     who was revoked is let in
//	mount-may-all     a mount may ask for what a server may
//
//	answer-before-revocation  a change is acknowledged before mounts have dropped what they hold of it
//	show-before-revocation    a read shows a change that others may not know of yet
//	no-lease-wait             a new leader does not wait for the leases of another to be over
//	forget-words              a voter does not note when it last said in which term it is
//	store-silently            a voter that stores an entry does not note that it has said in which term it is
//	lease-from-answer         a mount counts its lease from the answer, not from what it asked
//	keep-over-ticks           what time changes is not revoked
//	keep-absent               a name that comes to be is not revoked
//
//	flip-bit          a bit flips in this node's memory when the voters are about to compare theirs
//
// Three are no mistakes, but moments that a test cannot meet otherwise:
//
//	die-answering     the process is killed when a creation's result is on its way to the kernel
//	die-asked         the process is killed when the kernel asks for the attributes of what was created just now, in the same open(2)
//	lose-answers      a name that begins with "untold" is created, and the answer to that never comes
//
// LOCKFS_TEST_COMPARE_INTERVAL says how often the voters compare their states, LOCKFS_TEST_CERTIFICATE_VALIDITY how long the
// certificates are valid that a server gives, LOCKFS_TEST_EAGER_LEASES=1 that all is leased that can be,
// also what has just changed or was asked for once, and LOCKFS_TEST_CLOCK_OFFSET by how much the program's wall clock is wrong: 1h is an
// hour fast. LOCKFS_TEST_CLOCK_FILE names a file that says that anew whenever the clock is read, so that it can jump and drift;
// without the file the clock is right. LOCKFS_TEST_CLOCK_RATE=1.01@5000 has clocks go fast by a hundredth that nobody sets, by which leases and
// sessions last, since a moment on CLOCK_BOOTTIME, in nanoseconds.
package fault
