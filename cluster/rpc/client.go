package rpc

import (
	"bufio"
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

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// deadAfter is how long what was sent may stay unacknowledged by the other host.
const deadAfter = 3 * time.Second

// silence is for how long a host that has been asked may say nothing at all before it is better to connect anew.
const silence = 1500 * time.Millisecond

var (
	errClosed = errors.New("closed")
	errSilent = errors.New("nothing was heard of it for too long")
)

// Client calls the server at one address. It connects when it is needed, and anew when a connection is lost.
type Client struct {
	address string
	dialer  net.Dialer
	numbers atomic.Uint64

	mu      sync.Mutex
	live    *connection
	dialing chan struct{} // closed when a dial under way has ended; nil: none is
	closed  bool
}

// NewClient does not connect yet. connectTimeout is for one attempt.
func NewClient(address string, connectTimeout time.Duration) *Client {
	return &Client{address: address, dialer: net.Dialer{
		Timeout:         connectTimeout,
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

// Call does one call. What became of it is unknown after an error.
func (c *Client) Call(ctx context.Context, method byte, request, reply proto.Message) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.address, err)
	}
	number := c.numbers.Add(1)
	message, err := encode(number, method, request)
	if err != nil {
		return err
	}
	answer, err := conn.call(ctx, number, message)
	switch {
	case err != nil:
		return fmt.Errorf("call %s: %w", c.address, err)
	case answer.method != answered:
		return fmt.Errorf("%s: %s", c.address, answer.message)
	}
	return proto.Unmarshal(answer.message, reply)
}

// Close fails the calls that are under way.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.live != nil {
		c.live.fail(errClosed)
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
	c.live = newConnection(conn)
	return c.live, nil
}

// connection is one connection of a client.
type connection struct {
	conn    net.Conn
	writing sync.Mutex
	heard   atomic.Uint64 // answers so far

	mu      sync.Mutex
	waiting map[uint64]chan frame // by the number of the call; nil: the connection has failed
	err     error                 // why
}

func newConnection(conn net.Conn) *connection {
	c := &connection{conn: conn, waiting: make(map[uint64]chan frame)}
	go c.hear()
	return c
}

func (c *connection) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting == nil
}

// fail ends all calls that wait. Only the first reason counts.
func (c *connection) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		return
	}
	c.err = err
	for _, answer := range c.waiting {
		close(answer)
	}
	c.waiting = nil
	_ = c.conn.Close()
}

// hear hands answers to those who wait for them.
func (c *connection) hear() {
	from := bufio.NewReader(c.conn)
	for {
		f, err := read(from, maxAnswer)
		if err != nil {
			c.fail(err)
			return
		}
		c.heard.Add(1)
		c.mu.Lock()
		answer := c.waiting[f.number]
		delete(c.waiting, f.number)
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

func (c *connection) call(ctx context.Context, number uint64, message []byte) (frame, error) {
	answer := make(chan frame, 1)
	c.mu.Lock()
	if c.waiting == nil {
		defer c.mu.Unlock()
		return frame{}, c.err
	}
	c.waiting[number] = answer
	c.mu.Unlock()
	began, heard := time.Now(), c.heard.Load()
	if err := c.send(message); err != nil {
		c.fail(err)
		return frame{}, err
	}
	select {
	case f, ok := <-answer:
		if !ok {
			return frame{}, c.err
		}
		return f, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	delete(c.waiting, number)
	c.mu.Unlock()
	if time.Since(began) > silence && c.heard.Load() == heard {
		c.fail(errSilent)
	}
	return frame{}, ctx.Err()
}

// send gives up on a host that takes nothing for long.
func (c *connection) send(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(deadAfter)); err != nil {
		return err
	}
	_, err := c.conn.Write(message)
	return err
}
