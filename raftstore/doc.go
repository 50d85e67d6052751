// Package raftstore puts the replicated namespace of lockfs behind a Raft log.
//
// [FSM] adapts a [namespace.Namespace] to hashicorp/raft and lets others read it; [Store.Propose] is the only
// place that puts commands into the log and sorts what raft answers.
//
// What a node cannot apply exactly as the others do, it does not apply: a panic, an entry that is damaged and one that this
// program does not know all of stop it with an [ApplyError], and it answers nothing more.
//
// Below it: namespace is the state machine, advisory its table of flock and fcntl locks, trust that of who belongs to the cluster, glob the patterns of its rules, digest the hash of the state, codec the bytes
// of commands and what of messages this program knows, lockjson how locks and events are printed, ids the types of
// numbers that name something, storepb the messages.
package raftstore
