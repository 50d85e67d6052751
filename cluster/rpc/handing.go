package rpc

import (
	"net"
	"sync"
	"time"
)

// handing is a listener whose connections a port hands to it.
type handing struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

func newHanding(address net.Addr) *handing {
	return &handing{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept is part of net.Listener.
func (h *handing) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (h *handing) Close() error {
	h.closing.Do(func() { close(h.closed) })
	return nil
}

// Addr is part of net.Listener.
func (h *handing) Addr() net.Addr { return h.address }

// hand ends the connection if nobody takes it in time.
func (h *handing) hand(conn net.Conn, within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case h.conns <- conn:
		return
	case <-h.closed:
	case <-timer.C:
	}
	_ = conn.Close()
}
