// Package session is what a mount holds of the cluster: a session that it keeps alive, its client, the journal of calls under way,
// and the processes of this host that hold locks. It calls nodes (package rpc), which may be in its process ([Voter]), and knows
// nothing else of them.
//
// # The session
//
// It numbers the mount's commands and has a lease, which a keepalive renews and which counts from when that was sent, on a clock
// that runs while the host sleeps: the mount stops relying on it before the leader can give it up. A mount that comes back too late opens another
// session and sends what was under way once more: first in the old one, which still knows what it has
// done, and in the new one if it was not done there.
//
// What a call creates exclusively without its caller being told is taken back, unless others use it by then: after a timeout, when the caller is
// killed, and when the process of the mount is. For that last case a file that is mapped into memory
// remembers the session and its open calls (journal), and the guard process finishes answers on their way (FinishAnswers).
//
// A mount that ends says farewell, once nothing of it is under way, and whether programs are still using it: then its advisory
// locks wait for the lock delay, as those of one that was given up on.
//
// A process can also hand its session over (Client.HandOver) when nothing is under way: whoever goes on with it opens nothing,
// so that nothing is closed. So does the successor of a killed process: it first settles the calls in the journal.
//
// # Waits
//
// The client follows all of its waits by one question, which it asks the leader again and again (waitsQuestion): requests for locks (lockWaits), and
// waits for changes of names, for events and for commands (changeWaits). The leader gives a lost answer once more, since the question says of which
// ends the client knows. A wait takes no call, and needs little memory.
//
// A wait for a name begins with the state after a command. The question asks for the changes since the earliest of these commands, so it
// makes no difference whether a change comes before the question or after. Other waits may end without a change: readers look again.
//
// A request for a lock that waits is part of the cluster's state.
// Requests go on waiting when the process ends. After HandOver the next client waits for them by their numbers ([Client.AwaitLock]). After
// a kill the next client asks the leader which requests the session has; a program with a call that the kernel repeats waits for
// the request that is there. A request for which no program has asked again after some seconds is interrupted.
//
// # Leases
//
// What the leader has leased to the session (package lease) is answered by the client. One call of its own has the lease extended, and
// brings what is to be dropped; it is made as long as somebody has a use for what is held.
//
// # Holders
//
// A mount attaches to the content that it commits what that says about its lock, and watches the process
// that holds it (package process). A number is a pid only if it is one of the writer's family when it is written. When the process
// ends the mount says so, again and again until the cluster
// knows. A new process of the mount, a new session, and from time to time every mount of a host, ask which
// processes of this host hold locks, and watch those too. Only pids of the mount's own pid namespace and
// boot can be judged. While a session of a host is alive, none can be opened under its name by a machine
// that was booted another time: either it is another machine, or this one crashed, and its old session ends
// soon. After that, the processes of the old boot are known to be gone if the machine is the same: it has an id, of the system
// or kept by the mounts where it outlasts a boot. A clone has the id of its machine and another boot, so a boot proves nothing before the
// machine was silent for the term of a session, also after a goodbye. If the old session is renewed while another boot waits, both
// machines live, and the leader raises an alarm. A machine that was cloned in memory has the same boot too and cannot be told apart.
//
// Where a rule makes the creator the holder, the cluster asks the mount who makes a name (NEED_LINEAGE), and for some
// time the mount tells without being asked. It watches the maker and those in whose place it may act (makers).
//
// # Other clients
//
// What is no mount but takes locks for others, as package forrststore does, has a client and a session like one.
// Nobody holds a descriptor there that could outlive the session, so its advisory locks need no delay.
package session
