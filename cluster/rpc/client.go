package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// connectTime is for one attempt: a host that comes back is to be found soon.
const connectTime = time.Second

var errClosed = errors.New("closed")

// Client calls the server at one address. It connects when it is needed, and anew when a connection is lost.
type Client struct {
	address string
	dialer  net.Dialer
	numbers atomic.Uint64
	pauses  pauses

	mu      sync.Mutex
	live    *connection
	dialing chan struct{} // closed when a dial under way has ended; nil: none is
	closed  bool
}

// NewClient does not connect yet.
func NewClient(address string) *Client {
	return &Client{address: address, pauses: standardPauses, dialer: net.Dialer{
		Timeout:         connectTime,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter, Interval: deadAfter / 3, Count: 3},
		ControlContext:  limitUnacknowledged,
	}}
}

// limitUnacknowledged notices a host that is cut off while something is on its way to it; keepalives notice it else.
func limitUnacknowledged(_ context.Context, _, _ string, conn syscall.RawConn) error {
	var err error
	controlled := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
	})
	return errors.Join(controlled, err)
}

// Call does one call, and waits for its answer for as long as ctx does. What became of it is unknown after an error, but for a
// [Refusal]. The error may wrap [ErrUnreachable].
func (c *Client) Call(ctx context.Context, method byte, request, reply proto.Message) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.address, err)
		}
	}()
	h := head{number: c.numbers.Add(1), kind: method}
	if deadline, limited := ctx.Deadline(); limited {
		if h.wait = time.Until(deadline); h.wait <= 0 { // which would be told as no limit
			return context.DeadlineExceeded
		}
	}
	message, err := encode(h, request)
	if err != nil || len(message) > startSize+MaxRequest {
		return Unsendable
	}
	var answer frame
	for err = errIdle; errors.Is(err, errIdle); {
		var conn *connection
		if conn, err = c.connect(ctx); err == nil {
			answer, err = conn.call(ctx, h.number, message)
		}
	}
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil:
		return err
	case answer.kind != answered:
		return Refusal(answer.kind)
	}
	return proto.Unmarshal(answer.message, reply)
}

// Close fails the calls that are under way.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.live != nil {
		_ = c.live.fail(errClosed)
	}
}

// connect answers a connection that works as far as is known. Callers share a dial.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, errClosed
		}
		if c.live != nil && !c.live.failed() {
			defer c.mu.Unlock()
			return c.live, nil
		}
		if c.dialing == nil {
			c.dialing = make(chan struct{})
			c.mu.Unlock()
			return c.dial(ctx)
		}
		dialing := c.dialing
		c.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) dial(ctx context.Context) (*connection, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", c.address)
	if err == nil {
		_, err = conn.Write([]byte(Preface))
		err = guess(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.dialing)
	c.dialing = nil
	if err == nil && c.closed {
		err = errClosed
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, err
	}
	c.live = newConnection(conn, c.pauses)
	return c.live, nil
}
