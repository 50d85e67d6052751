// Package clusterpb has the messages between servers, mounts and commands. cluster.proto describes them; go
// generate writes the rest.
package clusterpb

//go:generate go run lockfs/raftstore/storepb/internal/protogen cluster/clusterpb/cluster.proto
