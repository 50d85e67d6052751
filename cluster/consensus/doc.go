// Package consensus assembles raft: its log, votes, snapshots, transport, and their owner. Leadership and
// the work of a leader are in package cluster.
//
// A data directory belongs to one node for as long as its disk lives ([Directory]). All of it is checked
// before raft may rely on it, and unreadable data is refused: as damage if a checksum says so
// ([DamagedError]), else as an error of the disk or a file of another version.
//
// # Log and votes
//
// raft-wal keeps the log, checked before it is opened (package wal). A leader writes an entry in parallel
// to its followers; parallelLog says why that is safe. Terms and votes are one record in raft-boltdb
// (hashicorp/raft#661), with a checksum.
//
// # Without a quorum
//
// [Create] makes a data directory from a state, and [Recovery] turns the rest of a cluster into a cluster
// of one. Both write a snapshot, at an index far above everything the cluster had, with this node as the
// only voter and no log. Once that snapshot has its name the work is done: a start drops earlier entries
// of the log.
//
// # Messages
//
// Heartbeats take raft's main loop: on the transport's goroutine they would run in parallel to it and
// could make logs diverge (hashicorp/raft#695). Pre-vote is on. A leader transfers its leadership before
// it stops, or is removed or demoted. A follower starts an election early if its leader's process has
// ended (electionTrigger). Raft mishandles messages that begin or end outside its log, and late
// snapshots. appendGate corrects these before raft gets them.
//
// Each message names its sender's process. Requests and replies of a process that does not count as its
// server are refused ([Instances]); a vote is stored with the process it was given to.
//
// # Disk
//
// A disk that fails or hangs ends the process, and silences the node before that (disk, [StepDown]).
//
// A full disk does not. A reserve file is deleted then, so that a snapshot can be taken and the log
// truncated. If that is not enough, writes wait until there is space (diskReserve). The node stays a
// voter, but sends nothing as candidate or leader, and acknowledges nothing.
//
// # Snapshots
//
// A snapshot follows after a number of entries, or of bytes, that grows with the state, because each one
// writes the whole state. Both numbers also limit the log left after a snapshot.
package consensus
