package rpc

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// whileConnected returns a context which ends when the peer closes the connection. Do not read from it until
// stop has returned.
func whileConnected(ctx context.Context, conn net.Conn) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancel(ctx)
	raw := rawOf(conn)
	if raw == nil {
		return watched, cancel
	}
	_ = conn.SetReadDeadline(time.Time{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := raw.Read(peerClosed); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}()
	return watched, func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // ends the read
		<-ended
		cancel()
	}
}

// peerClosed also reports a close behind unread data.
func peerClosed(fd uintptr) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0
}

// rawOf returns nil for anything but a socket.
func rawOf(conn net.Conn) syscall.RawConn {
	socket, is := socketOf(conn).(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
