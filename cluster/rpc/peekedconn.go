package rpc

import (
	"net"
	"net/netip"
)

// peekedConn is a connection whose first bytes a port has read.
type peekedConn struct {
	net.Conn
	caller Caller
	peeked []byte // bytes read before
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

// callerAt returns the caller of a connection.
func callerAt(conn net.Conn) (Caller, error) {
	switch c := conn.(type) {
	case *peekedConn:
		return c.caller, nil
	case *net.UnixConn:
		return UserAt(c)
	}
	return Caller{Role: RoleInsecure, Address: addressOf(conn)}, nil
}

// addressOf returns the remote address without the port.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

// CloseWrite ends the sending side.
func (c *peekedConn) CloseWrite() error {
	if half, can := c.Conn.(halfCloser); can {
		return half.CloseWrite()
	}
	return nil
}

type halfCloser interface{ CloseWrite() error }

// abort closes a connection without waiting for the peer.
func abort(conn net.Conn) { _ = socketOf(conn).Close() }

// wrapped is a connection over another one, like those of crypto/tls.
type wrapped interface{ NetConn() net.Conn }

// socketOf returns the innermost connection.
func socketOf(conn net.Conn) net.Conn {
	for {
		over, is := conn.(wrapped)
		if !is {
			return conn
		}
		conn = over.NetConn()
	}
}
