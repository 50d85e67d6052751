package rpc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/storepb"
)

// longestCall limits calls without a limit of the caller, or with a longer one.
const longestCall = time.Minute

// times limit the waits for the peer.
type times struct {
	preface time.Duration
	frame   time.Duration // the rest of it
	idle    time.Duration // until the next one; clients close a connection earlier
}

var (
	standardTimes = times{preface: time.Second, frame: frameTime, idle: 2 * time.Minute}
	joinTimes     = times{preface: time.Second, frame: frameTime, idle: frameTime}
)

// service is shared by the connections of a server.
type service struct {
	handlers  map[byte]Handler
	malformed func()
	quota     *quota
	times     times
	judge     func(by, caller Caller) error // nil: no forwarded request is accepted
}

// serverConn is one connection of a server.
type serverConn struct {
	*service
	conn    net.Conn
	caller  Caller
	from    *bufio.Reader
	bucket  *bucket // of its calls
	coming  *bucket // of its host's incomplete requests
	calls   sync.WaitGroup
	writing sync.Mutex
}

func newServerConn(s *service, conn net.Conn, caller Caller, a buckets) *serverConn {
	return &serverConn{service: s, conn: conn, caller: caller, from: bufio.NewReader(conn), bucket: a.calls, coming: a.coming}
}

// serve does calls until the peer closes the connection, violates the protocol or is silent for too long.
// Then it waits for the calls in progress.
func (c *serverConn) serve() {
	defer c.calls.Wait()
	ctx, cancel := context.WithCancel(WithCaller(context.Background(), c.caller))
	defer cancel()
	defer func() { _ = c.conn.Close() }()
	if !c.readPreface() {
		return
	}
	for {
		h, request, err := c.next(ctx)
		if errors.Is(err, errFrame) {
			c.malformed()
		}
		if err != nil {
			return
		}
		if h.kind == ping {
			c.finish(ctx, h, encodeBare(head{number: h.number, kind: answered}))
			continue
		}
		c.begin(ctx, h, request)
	}
}

// begin starts a call, in a goroutine if it may wait.
func (c *serverConn) begin(ctx context.Context, h head, request []byte) {
	handler, found := c.handlers[h.method()]
	if !found {
		c.refuse(ctx, h, NoMethod)
		return
	}
	doing := ctx
	if h.kind != h.method() {
		var err error
		if doing, request, err = c.unwrap(ctx, request); err != nil || handler.Quick { // a quick method is for the node itself
			c.reply(ctx, h, nil, cmp.Or(err, error(Malformed)))
			return
		}
	}
	switch {
	case handler.Quick:
		c.do(doing, handler, h, request)
	case handler.Keep != nil:
		c.keep(doing, handler, h, request)
	default:
		c.calls.Add(1)
		go c.do(doing, handler, h, request)
	}
}

// unwrap returns the request of a detour, with a context for its original caller.
func (c *serverConn) unwrap(ctx context.Context, message []byte) (context.Context, []byte, error) {
	detour := new(clusterpb.Detour)
	if err := proto.Unmarshal(message, detour); err != nil {
		return nil, nil, Malformed
	}
	asks, origin := detour.GetUnreachable() != "", detour.GetOrigin()
	ctx = withReceivedDetour(ctx, detour)
	switch {
	case asks == (origin != nil): // a forwarded request is not forwarded again
		return nil, nil, Malformed
	case asks:
		return ctx, detour.GetRequest(), nil
	case c.judge == nil:
		return nil, nil, MayNotForward
	}
	caller, err := callerFrom(origin)
	if err != nil {
		return nil, nil, Malformed
	}
	caller.Forwarder = c.caller.Host
	if caller.Forwarder == "" {
		caller.Forwarder = c.caller.Address.String()
	}
	if err := c.judge(c.caller, caller); err != nil {
		return nil, nil, err
	}
	return WithCaller(ctx, caller), detour.GetRequest(), nil
}

func waitOf(h head) time.Duration {
	if h.wait == 0 {
		return longestCall
	}
	return min(h.wait, longestCall)
}

func (c *serverConn) readPreface() bool {
	var preface [len(Preface)]byte
	_ = c.conn.SetReadDeadline(time.Now().Add(c.times.preface))
	came, err := io.ReadFull(c.from, preface[:])
	understood := err == nil && string(preface[:]) == Preface
	if !understood && came > 0 { // else it checks whether the port is open
		c.malformed()
	}
	return understood
}

// next reads a request and acquires its quota.
func (c *serverConn) next(ctx context.Context) (head, []byte, error) {
	if c.from.Buffered() == 0 {
		_ = c.conn.SetReadDeadline(time.Now().Add(c.times.idle))
		if _, err := c.from.Peek(1); err != nil {
			return head{}, nil, err
		}
	}
	c.expect(startSize)
	h, err := readHead(c.from, c.quota.limits.request)
	if err != nil {
		return head{}, nil, err
	}
	request, err := c.receive(ctx, h)
	if err != nil {
		return head{}, nil, err
	}
	urgent := c.handlers[h.method()].Urgent || c.caller.Standing() == budget.Privileged
	if !c.take(ctx, c.bucket, cost(h), urgent) {
		return head{}, nil, net.ErrClosed
	}
	return h, request, nil
}

// receive reads the rest of a request. Only a request beyond the connection's buffer needs quota for this, so
// incomplete requests cannot block small ones of others.
func (c *serverConn) receive(ctx context.Context, h head) ([]byte, error) {
	if h.length > c.from.Size() {
		if !c.take(ctx, c.coming, h.length, false) {
			return nil, net.ErrClosed
		}
		defer c.quota.release(c.coming, h.length)
	}
	c.expect(h.length)
	if h.length <= c.from.Size() {
		if _, err := c.from.Peek(h.length); err != nil {
			return nil, err
		}
	}
	return readMessage(c.from, h.length)
}

// take waits for quota. It returns false if the peer or the server has gone.
func (c *serverConn) take(ctx context.Context, a *bucket, bytes int, urgent bool) bool {
	if c.quota.tryAcquire(a, bytes, urgent) {
		return true
	}
	ctx, stop := whileConnected(ctx, c.conn)
	defer stop()
	return c.quota.acquireWait(ctx, a, bytes, timesFor(urgent))
}

// expect limits the time for the rest of a frame.
func (c *serverConn) expect(bytes int) {
	if c.from.Buffered() < bytes {
		_ = c.conn.SetReadDeadline(time.Now().Add(c.times.frame))
	}
}

func cost(request head) int { return callCost + request.length }

// do does a call and replies. A call without Quick lasts as long as its caller waits. It gets no reply if
// this ends before there is quota for it.
func (c *serverConn) do(ctx context.Context, handler Handler, h head, request []byte) {
	wanted := ctx
	if !handler.Quick {
		defer c.calls.Done()
		patience, cancel := context.WithTimeout(ctx, waitOf(h))
		defer cancel()
		if ctx = patience; waitOf(h) == h.wait {
			wanted = patience
		}
	}
	reply, err := handler.Do(ctx, request)
	c.reply(wanted, h, reply, err)
}

// keep does a call without a waiting goroutine. It gets no reply after its caller's time.
func (c *serverConn) keep(ctx context.Context, handler Handler, h head, request []byte) {
	c.calls.Add(1)
	until := time.Now().Add(waitOf(h))
	asking, answered := ctx, func() {}
	if Unreachable(ctx) != "" { // if it is forwarded, the leader needs the caller's time
		asking, answered = context.WithDeadline(ctx, until)
	}
	handler.Keep(asking, request, func(reply proto.Message, err error) {
		answered()
		go func() { // quota for the reply may come only after the next request was read
			defer c.calls.Done()
			wanted, cancel := ctx, func() {}
			if waitOf(h) == h.wait {
				wanted, cancel = context.WithDeadline(ctx, until)
			}
			defer cancel()
			if wanted.Err() != nil {
				c.quota.release(c.bucket, cost(h))
				return
			}
			c.reply(wanted, h, reply, err)
		}()
	})
}

// reply sends the result of a call.
func (c *serverConn) reply(wanted context.Context, h head, reply proto.Message, err error) {
	refusal, why := new(RefusedError), Refusal(0)
	switch {
	case errors.As(err, &refusal):
		c.decline(wanted, h, refusal.Result)
		return
	case errors.As(err, &why) && (why == NotForwarded || why == MayNotForward):
		c.finish(wanted, h, encodeBare(head{number: h.number, kind: byte(why)}))
		return
	}
	size := startSize + proto.Size(reply)
	switch {
	case err != nil:
		c.refuse(wanted, h, Malformed)
	case size > startSize+MaxAnswer:
		c.finish(wanted, h, encodeBare(head{number: h.number, kind: byte(Unsendable)}))
	case c.quota.acquireWait(wanted, c.bucket, size, burst):
		c.answer(wanted, h, reply)
		c.quota.release(c.bucket, size)
	default:
		c.quota.release(c.bucket, cost(h))
	}
}

func (c *serverConn) answer(wanted context.Context, h head, reply proto.Message) {
	answer, err := encode(head{number: h.number, kind: answered}, reply)
	if err != nil {
		answer = encodeBare(head{number: h.number, kind: byte(Unsendable)})
	}
	c.finish(wanted, h, answer)
}

func (c *serverConn) refuse(wanted context.Context, h head, why Refusal) {
	c.malformed()
	c.finish(wanted, h, encodeBare(head{number: h.number, kind: byte(why)}))
}

// decline sends a node's refusal.
func (c *serverConn) decline(wanted context.Context, h head, why *storepb.Result) {
	answer, err := encode(head{number: h.number, kind: byte(refused)}, why)
	if err != nil {
		answer = encodeBare(head{number: h.number, kind: byte(Unsendable)})
	}
	c.finish(wanted, h, answer)
}

// finish sends a reply. It closes the connection if the peer does not read it; the reader notices.
func (c *serverConn) finish(wanted context.Context, h head, answer []byte) {
	defer c.quota.release(c.bucket, cost(h))
	if c.send(wanted, answer) != nil {
		_ = c.conn.Close()
	}
}

// send skips a reply which has become useless while it waited for its turn.
func (c *serverConn) send(wanted context.Context, answer []byte) error {
	if !c.writing.TryLock() {
		c.writing.Lock()
		if wanted.Err() != nil {
			c.writing.Unlock()
			return nil
		}
	}
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(deadAfter)); err != nil {
		return err
	}
	_, err := c.conn.Write(answer)
	return err
}
