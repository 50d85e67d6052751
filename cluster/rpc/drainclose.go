package rpc

import (
	"net"
	"time"
)

// How long somebody is listened to that has been refused, and how many of those there are at a time.
const (
	maxDraining = 64
	drainTime   = time.Second
	drainBytes  = 64 << 10
)

// refuseConnection says why all calls of a connection are refused.
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

// drainClose reads what the other side sends, for a while. A connection that ends with something unread is reset, and what was
// said last is lost.
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
