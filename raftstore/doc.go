// Package raftstore holds the replicated namespace of lockfs: a POSIX tree of small files, kept in
// memory on every voter and changed only by the commands of the Raft log.
//
// [Namespace] is the state machine, a plain type: Apply takes one command and answers a result. It
// knows no clock, randomness, log, goroutine or network, so the same commands give the same state on
// every node; the time, the caller and everything that needs judgement come in with the command. An
// operation that cannot be done is a result with a code, never a panic, whatever the command holds.
//
// [FSM] adapts a Namespace to hashicorp/raft and lets others read it; [Store.Propose] is the only
// place that puts commands into the log and sorts what raft answers.
//
// # Exactly once
//
// A mount opens a session and numbers its commands from 1. The state keeps the reply to each number
// until the session acknowledges it, so a command that comes twice is done once and answered twice.
// Cancel settles a number whose outcome its caller was never told: what it created is taken back, and
// should it come later it does nothing.
//
// # Removed files
//
// An inode without a name (an orphan) stays readable for a while, for readers elsewhere that had
// opened it: at least [orphanAge] unless more than [orphanLimit] of them wait. The session that
// removed it may go on writing to it, and keeps it for as long as it wants by pinning it; a write
// from any other session is STALE. That is how a holder on another host learns that it lost its lock.
//
// # Snapshots
//
// The state lives in copy-on-write B-trees, so taking a snapshot is a copy of a few pointers and never
// stalls Apply; the nodes that change afterwards are copied by the one that changes them. For that
// reason no value in a tree is ever modified: it is replaced.
package raftstore
