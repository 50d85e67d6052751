package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Addresses are where servers were met that are not, or not yet, where the configuration has them: a majority has to find each other
// before it can write down that its addresses have changed. It is a hint, and is of no use as soon as the server is not met there or the
// configuration has another address: safety rests on who answers, not on where.
type Addresses struct {
	mu         sync.Mutex
	met        map[raft.ServerID]meeting
	configured map[raft.ServerID]raft.ServerAddress // of the newest configuration that was committed
}

// meeting is where a server was met in place of where the configuration had it.
type meeting struct{ at, insteadOf raft.ServerAddress }

// NewAddresses knows nothing yet.
func NewAddresses() *Addresses {
	return &Addresses{met: make(map[raft.ServerID]meeting), configured: make(map[raft.ServerID]raft.ServerAddress)}
}

// Meet notes that a server, as it is in the configuration, has answered at an address.
func (a *Addresses) Meet(server raft.Server, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met[server.ID] = meeting{at, server.Address}
}

// Of answers where a server was met, or else the address that it is known by.
func (a *Addresses) Of(id raft.ServerID, known raft.ServerAddress) raft.ServerAddress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, met := a.met[id]; met && m.insteadOf == known {
		return m.at
	}
	return known
}

// follow forgets where servers were met in place of an address that the configuration had before this one: they may go back to it.
func (a *Addresses) follow(configuration raft.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.configured
	a.configured = make(map[raft.ServerID]raft.ServerAddress)
	for _, server := range configuration.Servers {
		a.configured[server.ID] = server.Address
		if before[server.ID] != server.Address && a.met[server.ID].insteadOf != server.Address {
			delete(a.met, server.ID)
		}
	}
}

// missed notes that a server was not met at an address.
func (a *Addresses) missed(id raft.ServerID, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.met[id].at == at {
		delete(a.met, id)
	}
}
