// Package session connects a mount to the cluster. It has the session with its keepalives, the client, the
// journal of calls in progress, and the watch over lock holders on this host. It calls nodes through package
// rpc; a node may be in its own process ([Voter]).
//
// # The session
//
// A session numbers the mount's commands. Its TTL runs from the sending of the last keepalive, on a clock
// which includes sleep. So the mount stops relying on the session before the leader can expire it. After
// expiry the mount opens another session and repeats the calls in progress. It asks first in the old session,
// which knows finished calls, and uses the new one for the others.
//
// If a call creates a file exclusively and its caller gets no result, the client cancels the creation, unless
// other programs use the file by then. This happens after a timeout, after the caller is killed, and after
// the mount's process is killed. For the last case a file mapped into memory stores the session and its open
// calls (journal). A guard process sends replies which the killed process had ready (FinishAnswers).
//
// A closing mount ends its session after its last call. It reports whether programs still use it: if so, its
// advisory locks wait for the lock delay, like those of an expired session.
//
// A process can hand its session over (Client.HandOver) when no call is in progress. The next process does
// not open the session again, so the cluster keeps everything in it. The successor of a killed process does
// the same after it has cancelled the calls in the journal.
//
// # Waits
//
// The client follows all its waits with one repeated question to the leader (waitsQuestion). It covers lock
// requests (lockWaits), and waits for changes of names, events and commands (changeWaits). The question
// contains the last known end, so the leader repeats a lost reply. A wait takes no call and little memory.
//
// A wait for a name begins with the state after a command. The question asks for changes since the earliest
// of these commands, so an early change is not lost. Other waits may end without a change: readers check
// again.
//
// A waiting lock request is part of the cluster's state and outlives the process. After HandOver the next
// client waits for requests by number ([Client.AwaitLock]). After a kill the next client asks the leader for
// the session's requests. The kernel repeats the interrupted calls, and a repeated call adopts the existing
// request. The client interrupts requests without such a call after some seconds.
//
// # Leases
//
// The client answers queries from leased results (package lease). A separate call extends the lease and
// returns revoked inodes. It repeats while the leased results are in use.
//
// # Holders
//
// A mount adds the lock facts of a content to the command, and watches the holder's process (package
// process). A number counts as a pid only if it belongs to the writer's family at the time of the write.
// After the end of the process the mount informs the cluster, and retries until it succeeds. A new process of
// the mount and a new session ask for the holders on this host, and watch them, too. So does every mount of
// the host periodically.
//
// A mount can judge only pids of its own pid namespace and boot. While a host has a live session, a machine
// with another boot id cannot open a session under the host's name. Either it is another machine, or this one
// crashed and its old session expires soon. After expiry, the processes of the old boot are gone if the
// machine is the same.
//
// A machine has an id, of the system or stored by the mounts where it survives a boot. A clone has the same
// id and another boot. So a boot proves nothing until the machine has been silent for a session's TTL, even
// after a clean end. If the old session is renewed while another boot waits, both machines run, and the
// leader raises an alarm. A machine cloned in memory has the same boot, too; lockfs cannot distinguish it.
//
// Some rules make the creator the holder. The cluster then asks the mount for the creator (NEED_LINEAGE), and
// for some time the mount includes it in all commands. The mount watches the creator and its family
// (creators).
//
// # Other clients
//
// Other programs which lock for their users, such as package forrststore, have a client and a session, too.
// They leave no file descriptors behind, so their advisory locks need no lock delay.
package session
