package rpc

import (
	"net"
	"net/netip"
)

// peekedConn is a connection that a port hands on.
type peekedConn struct {
	net.Conn
	caller Caller
	peeked []byte // what has been read of it
}

// NetConn is part of wrapped.
func (c *peekedConn) NetConn() net.Conn { return c.Conn }

// Read is part of net.Conn.
func (c *peekedConn) Read(b []byte) (int, error) {
	if len(c.peeked) > 0 {
		n := copy(b, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// callerAt answers who has connected.
func callerAt(conn net.Conn) (Caller, error) {
	switch c := conn.(type) {
	case *peekedConn:
		return c.caller, nil
	case *net.UnixConn:
		return UserAt(c)
	}
	return Caller{Role: RoleInsecure, Address: addressOf(conn)}, nil
}

// addressOf answers without the port.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

// CloseWrite says that nothing more will be sent.
func (c *peekedConn) CloseWrite() error {
	if half, can := c.Conn.(halfCloser); can {
		return half.CloseWrite()
	}
	return nil
}

type halfCloser interface{ CloseWrite() error }

// abort ends a connection without a word, so that it does not wait for the other side.
func abort(conn net.Conn) { _ = socketOf(conn).Close() }
