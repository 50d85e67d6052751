// Package consensus assembles raft: its log, its votes, its snapshots, its transport, and whose they are. Who leads, and what a
// leader does for others, is package cluster's.
//
// A data directory belongs to one node for as long as its disk lives ([Directory]). All of it is checked in whole before raft may
// rely on it, and what cannot be read is refused: damage where a checksum says so ([DamagedError]), else the disk's error
// or another version's file.
//
// # Log and votes
//
// The log is kept by raft-wal, and checked before it is opened (package wal). A leader writes to it while its followers write to
// theirs; how that stays safe is told at parallelLog. Terms and votes are one record in raft-boltdb (hashicorp/raft#661), with a
// checksum.
//
// # Without a majority
//
// A data directory is made anew from a state ([Create]), or what is left of a cluster becomes a cluster of one ([Recovery]). Both are
// a snapshot at an index far above all that the cluster had, with this node as the only voter, and no log. Once that snapshot
// has its name it is done: a start drops entries of the log that end before it.
//
// # Messages
//
// Heartbeats take raft's main loop, because handled on the transport's goroutine they run beside it
// and can make logs diverge (hashicorp/raft#695). Pre-vote is on. A leader that is about to stop, be removed or demoted transfers its leadership. A follower stands for election early if
// the process of its leader has ended (electionTrigger). What raft makes of a message whose beginning or
// end it does not know from its log, or of a snapshot that comes late, is seen to before it gets them (incoming).
//
// Each message names the process that sends it. Requests and answers of a process that does not count as its server are refused
// ([Instances]); a vote is remembered with the process that it was given to.
//
// # Disk
//
// A disk that fails or hangs ends the process, and before that its node is silent (disk, [StepDown]).
//
// A full one does not. A part of what is to be free is a file that is given up then, so that a snapshot can be taken and the log
// shortened. If that does not help, writes wait until there is space (space): the node stays, as a voter that says nothing as
// candidate or leader, and acknowledges nothing.
//
// # Snapshots
//
// They come after a number of entries, or of bytes, that grows with the state, since each writes all of it; of both there is a
// bound for what is left of the log behind one.
package consensus
