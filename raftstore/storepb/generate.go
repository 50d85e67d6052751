package storepb

//go:generate go run lockfs/raftstore/storepb/internal/protogen raftstore/storepb/store.proto
