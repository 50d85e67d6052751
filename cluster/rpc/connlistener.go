package rpc

import (
	"net"
	"sync"
	"time"
)

// connListener is a listener fed by a port.
type connListener struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

func newConnListener(address net.Addr) *connListener {
	return &connListener{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept is part of net.Listener.
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (l *connListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr is part of net.Listener.
func (l *connListener) Addr() net.Addr { return l.address }

// deliver closes the connection if it is not accepted in time.
func (l *connListener) deliver(conn net.Conn, within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case l.conns <- conn:
		return
	case <-l.closed:
	case <-timer.C:
	}
	_ = conn.Close()
}
