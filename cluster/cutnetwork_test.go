package cluster

import (
	"context"
	"net"
	"sync"
)

// cutNetwork is TCP as one process uses it, with ways to some addresses that are cut: what is sent there
// vanishes, and so does what comes from there.
type cutNetwork struct {
	mu  sync.Mutex
	cut map[string]bool
}

func newCutNetwork() *cutNetwork { return &cutNetwork{cut: make(map[string]bool)} }

// set cuts the way to an address, or heals it.
func (n *cutNetwork) set(address string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[address] = cut
}

func (n *cutNetwork) isCut(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[address]
}

// Listen is part of rpc.Network.
func (n *cutNetwork) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// Dial is part of rpc.Network.
func (n *cutNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	if n.isCut(address) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, network: n, to: address}, nil
}

type cutConn struct {
	net.Conn
	network *cutNetwork
	to      string
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.network.isCut(c.to) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.network.isCut(c.to) {
			return n, err
		}
	}
}
