// Package storepb has the messages of the replicated namespace: what the Raft log, queries and snapshots consist of. What
// they mean is in store.proto, of which go generate makes the rest.
package storepb

//go:generate go run lockfs/raftstore/storepb/internal/protogen raftstore/storepb/store.proto
