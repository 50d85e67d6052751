package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// silenceTimeout is how long a server may send nothing before the client reconnects.
const silenceTimeout = 1500 * time.Millisecond

// idleTimes are times without data from the server.
type idleTimes struct {
	quiet  time.Duration // with pending calls: then ping the server
	unused time.Duration // without calls: then close, well before the server does, so no call fails
}

var standardIdleTimes = idleTimes{quiet: 10 * time.Second, unused: time.Minute}

var (
	errNoReply      = errors.New("no answer for too long")
	errIdle         = errors.New("the connection was not used any more")
	errLate         = fmt.Errorf("no time is left to ask: %w", context.DeadlineExceeded)
	errClosedByPeer = errors.New("it hung up without an answer: it may be of another version, or have too many connections")
)

// frame is a reply.
type frame struct {
	head
	message []byte
}

// read returns the error of a reply, or decodes its message.
func (f frame) read(reply proto.Message) error {
	switch f.kind {
	case answered:
		return proto.Unmarshal(f.message, reply)
	case byte(refused):
		refusal := &RefusedError{Result: new(storepb.Result)}
		if err := proto.Unmarshal(f.message, refusal.Result); err != nil {
			return err
		}
		return refusal
	}
	return Refusal(f.kind)
}

// clientConn is one connection of a client.
type clientConn struct {
	conn     net.Conn
	vetting  Vetting // nil: none
	pauses   idleTimes
	writing  sync.Mutex
	received atomic.Uint64 // replies so far

	mu      sync.Mutex
	pending map[uint64]chan frame // by call number; nil: the connection has failed
	err     error                 // the reason
}

func newClientConn(conn net.Conn, v Vetting, p idleTimes) *clientConn {
	c := &clientConn{conn: conn, vetting: v, pauses: p, pending: make(map[uint64]chan frame)}
	go c.readReplies()
	return c
}

func (c *clientConn) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending == nil
}

// fail ends all pending calls, and returns the first reason.
func (c *clientConn) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.received.Load() == 0 {
		err = explainClose(err)
	}
	c.end(err)
	return c.err
}

// explainClose adds to the error of a connection which closed without any reply.
func explainClose(err error) error {
	for _, end := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w (%w)", errClosedByPeer, err)
		}
	}
	return err
}

// end is fail with the mutex held.
func (c *clientConn) end(err error) {
	if c.pending == nil {
		return
	}
	c.err = err
	for _, answer := range c.pending {
		close(answer)
	}
	c.pending = nil
	_ = c.conn.Close()
}

// readReplies passes replies to the pending calls.
func (c *clientConn) readReplies() {
	from := bufio.NewReader(c.conn)
	for {
		f, err := c.next(from)
		if err != nil {
			_ = c.fail(err)
			return
		}
		c.received.Add(1)
		if f.number == ofConnection && f.kind != answered {
			_ = c.fail(Refusal(f.kind))
			return
		}
		c.mu.Lock()
		answer := c.pending[f.number]
		delete(c.pending, f.number)
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

func (c *clientConn) next(from *bufio.Reader) (frame, error) {
	if err := c.awaitFrame(from); err != nil {
		return frame{}, err
	}
	c.limitFrame(from, startSize)
	h, err := readHead(from, MaxAnswer)
	if err != nil {
		return frame{}, err
	}
	c.limitFrame(from, h.length)
	message, err := readMessage(from, h.length)
	return frame{h, message}, err
}

// awaitFrame waits for the beginning of a reply.
func (c *clientConn) awaitFrame(from *bufio.Reader) error {
	wait, asked := c.pauses.quiet, false
	for unused := time.Duration(0); from.Buffered() == 0; {
		_ = c.conn.SetReadDeadline(time.Now().Add(wait))
		_, err := from.Peek(1)
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case asked:
			return errNoReply
		case c.hasPending():
			if err := c.send(encodeBare(head{kind: ping})); err != nil {
				return err
			}
			wait, asked = silenceTimeout, true
		default:
			if unused += wait; unused >= c.pauses.unused && c.endUnused() {
				return errIdle
			}
		}
	}
	return nil
}

// limitFrame limits the time for the rest of a frame.
func (c *clientConn) limitFrame(from *bufio.Reader, bytes int) {
	if from.Buffered() < bytes {
		_ = c.conn.SetReadDeadline(time.Now().Add(frameTime))
	}
}

func (c *clientConn) hasPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// endUnused closes the connection unless calls are pending.
func (c *clientConn) endUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 {
		return false
	}
	c.end(errIdle)
	return true
}

// ask sends a request with the caller's remaining time, and waits for the reply.
func (c *clientConn) ask(ctx context.Context, h head, request proto.Message) (frame, error) {
	if deadline, limited := ctx.Deadline(); limited {
		if h.wait = time.Until(deadline); h.wait <= 0 { // 0 would mean no limit
			return frame{}, errLate
		}
	}
	message, err := encode(h, request)
	if err != nil || len(message) > startSize+MaxRequest {
		return frame{}, Unsendable
	}
	return c.call(ctx, h.number, message)
}

// call sends a request and waits for the reply. The error is errIdle if nothing was sent, because the
// idle connection was just closed.
func (c *clientConn) call(ctx context.Context, number uint64, message []byte) (frame, error) {
	answer := make(chan frame, 1)
	c.mu.Lock()
	if c.pending == nil {
		defer c.mu.Unlock()
		return frame{}, c.err
	}
	c.pending[number] = answer
	c.mu.Unlock()
	began, heard := time.Now(), c.received.Load()
	if err := c.send(message); err != nil {
		return frame{}, c.fail(err)
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
	delete(c.pending, number)
	c.mu.Unlock()
	if time.Since(began) > silenceTimeout && c.received.Load() == heard && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		_ = c.fail(errNoReply)
	}
	return frame{}, ctx.Err()
}

// send fails if the server does not take the data in time.
func (c *clientConn) send(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(deadAfter)); err != nil {
		return err
	}
	_, err := c.conn.Write(message)
	return err
}
