package hosts

import (
	"net"
	"time"
)

// Dial opens a TCP connection from the test's own host. It is closed at the end of the test.
func (h *Host) Dial(address string) (net.Conn, error) {
	var conn net.Conn
	err := h.thread.do(func() (err error) {
		conn, err = net.DialTimeout("tcp", address, 5*time.Second)
		return err
	})
	if err == nil {
		h.net.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// Listen accepts TCP connections on the host for the test, until its end.
func (h *Host) Listen(address string) (net.Listener, error) {
	var listener net.Listener
	err := h.thread.do(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	if err == nil {
		h.net.t.Cleanup(func() { _ = listener.Close() })
	}
	return listener, err
}
