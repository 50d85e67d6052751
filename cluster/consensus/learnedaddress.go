package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// LearnedAddresses are where servers were met that are not, or not yet, where the configuration has them: a majority has to find each other
// before it can write down that its addresses have changed. It is a hint, and is of no use as soon as the server is not met there or the
// configuration has another address: safety rests on who answers, not on where.
type LearnedAddresses struct {
	mu         sync.Mutex
	learned    map[raft.ServerID]learnedAddress
	configured map[raft.ServerID]raft.ServerAddress // of the newest configuration that was committed
}

// learnedAddress is where a server was met in place of where the configuration had it.
type learnedAddress struct{ at, insteadOf raft.ServerAddress }

// NewLearnedAddresses knows nothing yet.
func NewLearnedAddresses() *LearnedAddresses {
	return &LearnedAddresses{learned: make(map[raft.ServerID]learnedAddress), configured: make(map[raft.ServerID]raft.ServerAddress)}
}

// Learn notes that a server, as it is in the configuration, has answered at an address.
func (a *LearnedAddresses) Learn(server raft.Server, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned[server.ID] = learnedAddress{at, server.Address}
}

// Of answers where a server was met, or else the address that it is known by.
func (a *LearnedAddresses) Of(id raft.ServerID, known raft.ServerAddress) raft.ServerAddress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, met := a.learned[id]; met && m.insteadOf == known {
		return m.at
	}
	return known
}

// follow forgets where servers were met in place of an address that the configuration had before this one: they may go back to it.
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

// forget notes that a server was not met at an address.
func (a *LearnedAddresses) forget(id raft.ServerID, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.learned[id].at == at {
		delete(a.learned, id)
	}
}
