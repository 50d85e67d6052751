package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// LearnedAddresses are addresses of servers that differ from the configuration: a majority has to find
// each other before it can commit changed addresses. They are hints, dropped as soon as the server does
// not answer there or the configuration changes. Safety rests on the server that answers, not on its
// address.
type LearnedAddresses struct {
	mu         sync.Mutex
	learned    map[raft.ServerID]learnedAddress
	configured map[raft.ServerID]raft.ServerAddress // of the newest committed configuration
}

// learnedAddress replaces an address of the configuration.
type learnedAddress struct{ at, insteadOf raft.ServerAddress }

// NewLearnedAddresses returns an empty set.
func NewLearnedAddresses() *LearnedAddresses {
	return &LearnedAddresses{learned: make(map[raft.ServerID]learnedAddress), configured: make(map[raft.ServerID]raft.ServerAddress)}
}

// Learn records that a server of the configuration has answered at an address.
func (a *LearnedAddresses) Learn(server raft.Server, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned[server.ID] = learnedAddress{at, server.Address}
}

// Of returns the learned address of a server, or else the given one.
func (a *LearnedAddresses) Of(id raft.ServerID, known raft.ServerAddress) raft.ServerAddress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, met := a.learned[id]; met && m.insteadOf == known {
		return m.at
	}
	return known
}

// follow forgets learned addresses whose configured address has changed: the server may go back to it.
func (a *LearnedAddresses) follow(configuration raft.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.configured
	a.configured = make(map[raft.ServerID]raft.ServerAddress)
	for _, server := range configuration.Servers {
		a.configured[server.ID] = server.Address
		if before[server.ID] != server.Address && a.learned[server.ID].insteadOf != server.Address {
			delete(a.learned, server.ID)
		}
	}
}

// forget drops an address at which the server did not answer.
func (a *LearnedAddresses) forget(id raft.ServerID, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.learned[id].at == at {
		delete(a.learned, id)
	}
}

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
