package daemon

import (
	"net"
	"sync"
	"time"
)

// mostOnEndpoint is how many connections an endpoint that others may reach has at a time. Those that nothing comes on for endpointIdle
// make room.
const (
	mostOnEndpoint = 1024
	endpointIdle   = 2 * time.Minute
)

// fewConns is a listener that has no more than some connections at a time; others wait to be accepted.
type fewConns struct {
	net.Listener
	room chan struct{}
}

func newFewConns(listener net.Listener, most int) *fewConns {
	return &fewConns{listener, make(chan struct{}, most)}
}

// Accept is part of net.Listener.
func (l *fewConns) Accept() (net.Conn, error) {
	l.room <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// countedConn makes room when it is closed.
type countedConn struct {
	net.Conn
	leave func()
}

// NetConn is what is below, as that of a *tls.Conn.
func (c *countedConn) NetConn() net.Conn { return c.Conn }

// Close is part of net.Conn.
func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
