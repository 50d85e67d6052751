package rpc

import "net"

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
