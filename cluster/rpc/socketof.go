package rpc

import "net"

// wrapped is a connection over another one, as those of crypto/tls are.
type wrapped interface{ NetConn() net.Conn }

// socketOf answers what is below.
func socketOf(conn net.Conn) net.Conn {
	for {
		over, is := conn.(wrapped)
		if !is {
			return conn
		}
		conn = over.NetConn()
	}
}
