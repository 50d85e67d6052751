package rpc

import (
	"context"
	"net"
)

// Network replaces TCP between hosts in a simulation.
type Network interface {
	// Listen listens at HOST:PORT. Accepted connections have remote addresses of that form.
	Listen(address string) (net.Listener, error)
	// Dial connects to an address; without a listener the error is syscall.ECONNREFUSED.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

func (s *Security) listen(address string) (net.Listener, error) {
	if s != nil && s.Network != nil {
		return s.Network.Listen(address)
	}
	return net.Listen("tcp", address)
}
