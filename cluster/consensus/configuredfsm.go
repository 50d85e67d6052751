package consensus

import "github.com/hashicorp/raft"

// configuredFSM reports each committed configuration, in the order of the log.
type configuredFSM struct {
	raft.ConfigurationStore
	addresses *LearnedAddresses
}

// StoreConfiguration is part of raft.ConfigurationStore.
func (f configuredFSM) StoreConfiguration(index uint64, configuration raft.Configuration) {
	f.addresses.follow(configuration)
	f.ConfigurationStore.StoreConfiguration(index, configuration)
}
