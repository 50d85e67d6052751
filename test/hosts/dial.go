package hosts

import (
	"net"
	"time"
)

// Dial makes a TCP connection from the host that is the test's own. It is closed at the latest when the test ends.
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

// Listen accepts TCP connections on the host for the test, until that ends.
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
