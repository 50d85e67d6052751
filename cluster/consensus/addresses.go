package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Addresses are where servers were met that are not, or not yet, where the configuration has them: a majority has to find each other
// before it can write down that its addresses have changed. It is a hint, and is forgotten as soon as the server is not met there:
// safety rests on who answers, not on where.
type Addresses struct {
	mu  sync.Mutex
	met map[raft.ServerID]raft.ServerAddress
}

// NewAddresses knows nothing yet.
func NewAddresses() *Addresses {
	return &Addresses{met: make(map[raft.ServerID]raft.ServerAddress)}
}

// Meet notes that a server has answered at an address.
func (a *Addresses) Meet(id raft.ServerID, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.met[id] = at
}

// Of answers where a server was met, and the address that is given where that is not known.
func (a *Addresses) Of(id, otherwise string) string {
	return string(a.of(raft.ServerID(id), raft.ServerAddress(otherwise)))
}

func (a *Addresses) of(id raft.ServerID, otherwise raft.ServerAddress) raft.ServerAddress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, met := a.met[id]; met {
		return at
	}
	return otherwise
}

// missed notes that a server was not met at an address.
func (a *Addresses) missed(id raft.ServerID, at raft.ServerAddress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.met[id] == at {
		delete(a.met, id)
	}
}
