package rpc

import (
	"context"
	"net"
)

// Network is how hosts reach each other, in place of TCP. A simulation has one.
type Network interface {
	// Listen has connections to an address, HOST:PORT, come to a listener. They tell from where they come as such an address, too.
	Listen(address string) (net.Listener, error)
	// Dial connects to an address. That nobody listens there is syscall.ECONNREFUSED.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

func (s *Security) listen(address string) (net.Listener, error) {
	if s != nil && s.Network != nil {
		return s.Network.Listen(address)
	}
	return net.Listen("tcp", address)
}
