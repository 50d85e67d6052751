// Package clusterpb has the messages that nodes, mounts and commands send each other. What they mean is in cluster.proto, of
// which go generate makes the rest.
package clusterpb

//go:generate go run lockfs/raftstore/storepb/internal/protogen cluster/clusterpb/cluster.proto
