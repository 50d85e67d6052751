package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
)

var errClosed = errors.New("closed")

// Channel calls the server at one address. It connects when it is needed, and anew when a connection is lost.
type Channel struct {
	address  string
	security *Security
	protocol string
	numbers  atomic.Uint64
	pauses   idleTimes
	open     context.Context // ends when the client is closed
	close    context.CancelFunc

	mu      sync.Mutex
	live    *clientConn
	dialing *dialing // nil: none is under way
}

// NewChannel takes HOST:PORT, or unix:PATH. It does not connect yet. security may be nil.
func NewChannel(address string, security *Security) *Channel {
	return newChannel(address, security, ProtocolRPC)
}

func newChannel(address string, security *Security, protocol string) *Channel {
	c := &Channel{address: address, security: security, protocol: protocol, pauses: standardIdleTimes}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Call does one call, and waits for its answer for as long as ctx does. What became of it is unknown after an error, but for a
// [Refusal]. The error may wrap [ErrUnreachable].
func (c *Channel) Call(ctx context.Context, method byte, request, reply proto.Message) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.address, err)
		}
	}()
	kind, request, err := inDetour(ctx, method, request, reply)
	if err != nil {
		return Unsendable
	}
	var answer frame
	for err = errIdle; errors.Is(err, errIdle); {
		answer, err = c.attempt(ctx, kind, request)
	}
	var final *RefusedError // from Vetting
	switch {
	case errors.As(err, &final), errors.Is(err, Unsendable), errors.Is(err, errLate):
		return err
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil:
		return err
	}
	return answer.read(reply)
}

// attempt sends a request on the connection that there is, or on a new one.
func (c *Channel) attempt(ctx context.Context, kind byte, request proto.Message) (answer frame, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return frame{}, err
	}
	defer func() { c.security.noteRefusal(err) }()
	if err := conn.vet(ctx, &c.numbers); err != nil {
		return frame{}, err
	}
	if answer, err = conn.ask(ctx, head{number: c.numbers.Add(1), kind: kind}, request); err != nil {
		return frame{}, err
	}
	return answer, conn.refused() // the answer of a server that was removed meanwhile does not count
}

// Close fails the calls that are under way.
func (c *Channel) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	if c.live != nil {
		_ = c.live.fail(errClosed)
	}
}

// dialing is an attempt to connect, which callers share.
type dialing struct {
	ended chan struct{} // closed then; the rest is set before
	conn  *clientConn
	err   error
}

// connect answers a connection that works as far as is known.
func (c *Channel) connect(ctx context.Context) (*clientConn, error) {
	c.mu.Lock()
	if c.open.Err() != nil {
		c.mu.Unlock()
		return nil, errClosed
	}
	if c.live != nil && !c.live.failed() {
		defer c.mu.Unlock()
		return c.live, nil
	}
	if c.dialing == nil {
		c.dialing = &dialing{ended: make(chan struct{})}
		go c.dial(c.dialing)
	}
	d := c.dialing
	c.mu.Unlock()
	select {
	case <-d.ended:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial goes on when the caller has given up that wanted it: a server that many connect to at once would never be done else.
func (c *Channel) dial(d *dialing) {
	ctx, cancel := context.WithTimeout(c.open, connectTime+handshakeTime)
	defer cancel()
	conn, err := c.security.Dial(ctx, c.address, c.protocol)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(d.ended)
	c.dialing = nil
	if c.open.Err() != nil {
		if err == nil {
			_ = conn.Close()
		}
		err = errClosed
	}
	if d.err = err; err == nil {
		c.live = newClientConn(conn, c.security.vetting(conn), c.pauses)
		d.conn = c.live
	}
}
