package rpc

import (
	"net"
	"time"
)

// Limits for reading from refused connections.
const (
	maxDraining = 64
	drainTime   = time.Second
	drainBytes  = 64 << 10
)

// refuseConnection sends a refusal for all calls of a connection.
func refuseConnection(conn net.Conn, why Refusal) {
	_ = conn.SetWriteDeadline(time.Now().Add(drainTime))
	if _, err := conn.Write(encodeBare(head{number: ofConnection, kind: byte(why)})); err != nil {
		return
	}
	if half, can := conn.(halfCloser); can {
		_ = half.CloseWrite()
	}
	drainClose(conn)
}

// drainClose reads from the peer for a while: a connection closed with unread data is reset, and the refusal would be lost.
func drainClose(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTime))
	buffer := make([]byte, 4<<10)
	for left := drainBytes; left > 0; {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
