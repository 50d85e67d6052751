package rpc

import "sync"

// Peers keeps a client for each address.
type Peers struct {
	security *Security
	protocol string

	mu    sync.Mutex
	known map[string]*Client
}

// NewPeers returns an empty set. security may be nil.
func NewPeers(security *Security) *Peers {
	return &Peers{security: security, protocol: ProtocolRPC, known: make(map[string]*Client)}
}

// NewJoinPeers returns clients of join servers, which only enroll.
func NewJoinPeers(security *Security) *Peers {
	return &Peers{security: security, protocol: ProtocolJoin, known: make(map[string]*Client)}
}

// Node returns the node at an address, without waiting for a connection.
func (p *Peers) Node(address string) Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[address]
	if known == nil {
		known = newClient(address, p.security, p.protocol)
		p.known[address] = known
	}
	return known
}

// Nodes returns a node for each address.
func (p *Peers) Nodes(addresses []string) []Node {
	nodes := make([]Node, len(addresses))
	for i, address := range addresses {
		nodes[i] = p.Node(address)
	}
	return nodes
}

// Close closes the connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.known {
		known.Close()
	}
	clear(p.known)
}
