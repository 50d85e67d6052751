package rpc

import "sync"

// Peers keeps the connections to each node that is talked to.
type Peers struct {
	security *Security
	protocol string

	mu    sync.Mutex
	known map[string]*Client
}

// NewPeers knows nobody yet. security may be nil.
func NewPeers(security *Security) *Peers {
	return &Peers{security: security, protocol: ProtocolRPC, known: make(map[string]*Client)}
}

// NewJoinPeers are those at the join servers of nodes, which do nothing but enroll.
func NewJoinPeers(security *Security) *Peers {
	return &Peers{security: security, protocol: ProtocolJoin, known: make(map[string]*Client)}
}

// Node answers the node with this address. It does not wait for a connection.
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

// Nodes answers a node for each address.
func (p *Peers) Nodes(addresses []string) []Node {
	nodes := make([]Node, len(addresses))
	for i, address := range addresses {
		nodes[i] = p.Node(address)
	}
	return nodes
}

// Close ends the connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.known {
		known.Close()
	}
	clear(p.known)
}
