// Package raftstore puts the replicated namespace of lockfs behind a Raft log.
//
// [FSM] adapts a [namespace.Namespace] to hashicorp/raft and serves reads. [Store.Propose] is the only place
// that puts commands into the log and interprets raft's errors.
//
// A node applies an entry exactly as the other nodes do, or stops. A panic, a damaged entry and an entry with
// parts unknown to this program stop it with an [ApplyError]. It then answers nothing more.
//
// Packages below it:
//
//   - namespace: the state machine
//   - advisory: the table of flock and fcntl locks
//   - trust: the table of authorities, join tokens and hosts
//   - glob: the patterns of rules
//   - digest: the hash of the state
//   - codec: the encoding of commands, and checks for unknown parts of messages
//   - lockjson: locks and events as JSON
//   - ids: the types of numbers that identify something
//   - storepb: the messages
package raftstore
