package clusterpb

//go:generate go run lockfs/raftstore/storepb/internal/protogen cluster/clusterpb/cluster.proto
