package rpc

import (
	"net"
	"time"
)

// How long somebody is listened to that has been refused, and how many of those there are at a time.
const (
	mostLingering = 64
	lingerTime    = time.Second
	lingerBytes   = 64 << 10
)

// refuseConnection says why all calls of a connection are refused.
func refuseConnection(conn net.Conn, why Refusal) {
	_ = conn.SetWriteDeadline(time.Now().Add(lingerTime))
	if _, err := conn.Write(encodeBare(head{number: ofConnection, kind: byte(why)})); err != nil {
		return
	}
	if half, can := conn.(halfCloser); can {
		_ = half.CloseWrite()
	}
	linger(conn)
}

// linger reads what the other side sends, for a while. A connection that ends with something unread is reset, and what was
// said last is lost.
func linger(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	buffer := make([]byte, 4<<10)
	for left := lingerBytes; left > 0; {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
