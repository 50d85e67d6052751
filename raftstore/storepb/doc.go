// Package storepb has the messages of the replicated namespace: of the Raft log, queries and snapshots.
// store.proto documents them; go generate makes the rest from it.
package storepb

//go:generate go run lockfs/raftstore/storepb/internal/protogen raftstore/storepb/store.proto
