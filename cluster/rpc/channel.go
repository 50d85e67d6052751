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

// Channel sends calls to one address. It connects on demand, and again after a lost connection.
type Channel struct {
	address  string
	security *Security
	protocol string
	numbers  atomic.Uint64
	pauses   idleTimes
	open     context.Context // ends when the channel is closed
	close    context.CancelFunc

	mu      sync.Mutex
	live    *clientConn
	dialing *dialing // nil: none
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

// Call does a call and waits for the reply until ctx ends. After an error other than a [Refusal] the
// outcome is unknown. The error may wrap [ErrUnreachable].
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

// attempt sends a request on the present connection, or a new one.
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
	return answer, conn.refused() // the reply of a server removed meanwhile does not count
}

// Close fails the calls under way.
func (c *Channel) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	if c.live != nil {
		_ = c.live.fail(errClosed)
	}
}

// dialing is an attempt to connect, shared by callers.
type dialing struct {
	ended chan struct{} // closed at the end; the rest is set before
	conn  *clientConn
	err   error
}

// connect returns a connection without a known failure.
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

// dial continues after the caller has given up. Otherwise a server under many connections would never finish
// one.
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
