package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const testWait = 10 * time.Second

// Methods of the test server.
const (
	echo byte = iota
	echoQuickly
	wait
	large        // 1 MiB
	keepsNothing // likewise, at once
	keeps        // it is answered when waiting calls are, or nobody is there any more
)

type testServer struct {
	*Server
	address   string
	listener  net.Listener
	release   chan struct{} // closed: waiting calls are answered
	asked     atomic.Int32  // calls that wait, so far
	waiting   atomic.Int32
	told      atomic.Int64 // how long the last call that waited could, in nanoseconds
	malformed atomic.Int32
	crowded   atomic.Int32
}

func startServer(t testing.TB, address string) *testServer {
	t.Helper()
	return startLimited(t, address, standardLimits, standardTimes)
}

func startLimited(t testing.TB, address string, l limits, patience times) *testServer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := &testServer{address: listener.Addr().String(), listener: listener, release: make(chan struct{})}
	answer := func(_ context.Context, request []byte) (proto.Message, error) {
		text := new(wrapperspb.StringValue)
		return text, proto.Unmarshal(request, text)
	}
	handlers := map[byte]Handler{
		echo: {Do: answer}, echoQuickly: {Do: answer, Quick: true},
		wait: {Do: func(ctx context.Context, request []byte) (proto.Message, error) {
			s.asked.Add(1)
			s.waiting.Add(1)
			defer s.waiting.Add(-1)
			deadline, _ := ctx.Deadline()
			s.told.Store(int64(time.Until(deadline)))
			select {
			case <-s.release:
			case <-ctx.Done():
			}
			return answer(ctx, request)
		}},
		keeps: {Keep: func(ctx context.Context, request []byte, tell func(proto.Message, error)) {
			s.waiting.Add(1)
			go func() {
				defer s.waiting.Add(-1)
				select {
				case <-s.release:
				case <-ctx.Done():
				}
				tell(answer(ctx, request))
			}()
		}},
		keepsNothing: {Keep: func(_ context.Context, _ []byte, tell func(proto.Message, error)) {
			tell(wrapperspb.String(strings.Repeat("x", 1<<20)), nil)
		}},
		large: {Do: func(context.Context, []byte) (proto.Message, error) {
			return wrapperspb.String(strings.Repeat("x", 1<<20)), nil
		}},
	}
	s.Server = newServer(handlers, l, patience, func() { s.malformed.Add(1) }, func(Caller) { s.crowded.Add(1) })
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) stop() {
	_ = s.listener.Close()
	s.Close()
}

func newTestClient(t testing.TB, address string) *Channel {
	c := NewChannel(address, nil)
	t.Cleanup(c.Close)
	return c
}

func say(ctx context.Context, c *Channel, method byte, text string) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := c.Call(ctx, method, wrapperspb.String(text), reply)
	return reply.GetValue(), err
}

func TestCalls(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	for _, method := range []byte{echo, echoQuickly} {
		got, err := say(t.Context(), c, method, "hello")
		require.NoError(t, err)
		require.Equal(t, "hello", got)
	}
	_, err := say(t.Context(), c, 99, "")
	require.ErrorIs(t, err, NoMethod)
	require.ErrorIs(t, c.Call(t.Context(), echo, &wrapperspb.BytesValue{Value: []byte("\xff")}, new(wrapperspb.StringValue)), Malformed)
	require.Equal(t, int32(2), s.malformed.Load())
	_, err = say(t.Context(), c, echo, strings.Repeat("x", MaxRequest))
	require.ErrorIs(t, err, Unsendable)
	require.Equal(t, int32(2), s.malformed.Load(), "nobody was asked")
	got, err := say(t.Context(), c, echo, "")
	require.NoError(t, err, "the connection goes on")
	require.Empty(t, got)
}

// TestAnswersComeInAnyOrder has many callers share a connection while one call waits.
func TestAnswersComeInAnyOrder(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	slow := make(chan error, 1)
	go func() {
		got, err := say(t.Context(), c, wait, "slow")
		if err == nil && got != "slow" {
			err = fmt.Errorf("got %q", got)
		}
		slow <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
	var callers sync.WaitGroup
	failures := make(chan error, 16)
	for caller := range cap(failures) {
		callers.Go(func() {
			for n := range 200 {
				text := fmt.Sprintf("%d-%d", caller, n)
				if got, err := say(t.Context(), c, byte(n%2), text); err != nil || got != text {
					failures <- fmt.Errorf("%q: got %q, %w", text, got, err)
					return
				}
			}
		})
	}
	callers.Wait()
	require.Empty(t, failures)
	require.Empty(t, slow)
	close(s.release)
	require.NoError(t, <-slow)
}

// TestCallersGiveUp has a call end before its answer comes, which nobody is given then.
func TestCallersGiveUp(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := say(ctx, c, wait, "")
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(s.release)
	got, err := say(t.Context(), c, echo, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)
}

// TestKeptCalls has calls be answered by whoever has the answer, once their callers have given up or
// gone, too.
func TestKeptCalls(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c, gone := newTestClient(t, s.address), newTestClient(t, s.address)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := say(ctx, c, keeps, "late")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ended := make(chan error, 2)
	go func() {
		got, err := say(t.Context(), c, keeps, "hello")
		if err == nil && got != "hello" {
			err = errors.New(got)
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 2 }, testWait, time.Millisecond)
	go func() {
		_, err := say(t.Context(), gone, keeps, "")
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 3 }, testWait, time.Millisecond)
	gone.Close()
	require.ErrorIs(t, <-ended, errClosed)
	require.Eventually(t, func() bool { return s.waiting.Load() == 2 }, testWait, time.Millisecond, "that its caller has gone is told")
	close(s.release)
	require.NoError(t, <-ended)
	c.Close()
	require.Eventually(t, func() bool { return s.left() == standardLimits }, testWait, time.Millisecond, "nothing is counted any more")
}

// TestQuickCallsBlockNoOthers has somebody not read the answers to calls that are not kept: what he asks
// besides is done.
func TestQuickCallsBlockNoOthers(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	conn := connectTo(t, s)
	conn.say(Preface)
	const answers = 15 // there is room for all of them, but not in the sockets
	for n := range uint64(answers) {
		conn.request(n+1, keepsNothing, "")
	}
	conn.request(answers+1, wait, "")
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, deadAfter/2, time.Millisecond)
}

// TestLostConnections has a server end under a call, and another one take its place.
func TestLostConnections(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	ended := make(chan error, 1)
	go func() {
		_, err := say(t.Context(), c, wait, "")
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
	s.stop()
	require.ErrorIs(t, <-ended, ErrUnreachable)
	require.Eventually(t, func() bool { return s.waiting.Load() == 0 }, testWait, time.Millisecond, "its call is told")
	_, err := say(t.Context(), c, echo, "")
	require.ErrorIs(t, err, ErrUnreachable, "nobody is there")
	startServer(t, s.address)
	got, err := say(t.Context(), c, echo, "again")
	require.NoError(t, err)
	require.Equal(t, "again", got)
}

// TestSilentHostsAreDropped has a host take a call and say nothing, as one does that is frozen.
func TestSilentHostsAreDropped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	c := newTestClient(t, listener.Addr().String())
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), silenceTimeout+silenceTimeout/10)
		_, err = say(ctx, c, echo, "")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		conn := <-accepted
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(testWait)))
		_, err = bufio.NewReader(conn).ReadString('\xff') // to its end
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the connection was closed")
		_ = conn.Close()
	}
}

// TestDeadlinesTravel has a call end at both ends when the caller's time is up, though the connection
// stays.
func TestDeadlinesTravel(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	const patience = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := say(ctx, c, wait, ""); err != nil { // else the answer of a server whose time was up came before that was noticed
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrUnreachable)
	}
	require.LessOrEqual(t, time.Duration(s.told.Load()), patience+time.Millisecond)
	require.Eventually(t, func() bool { return s.waiting.Load() == 0 }, testWait, time.Millisecond)
	got, err := say(t.Context(), c, echo, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)

	ended := make(chan error, 1)
	go func() {
		_, err := say(t.Context(), c, wait, "")
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
	require.InDelta(t, longestCall, s.told.Load(), float64(testWait), "it does not say for how long")
	close(s.release)
	require.NoError(t, <-ended)
}

// TestExpiredCallsAreNotSent has a caller's time be up before it calls.
func TestExpiredCallsAreNotSent(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := say(ctx, c, wait, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = say(t.Context(), c, echoQuickly, "next")
	require.NoError(t, err)
	_, err = say(ctx, c, wait, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = say(t.Context(), c, echoQuickly, "next")
	require.NoError(t, err)
	require.Zero(t, s.asked.Load(), "what was sent before has come too")
}

func TestAClosedClientSendsNoCalls(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	_, err := say(t.Context(), c, echo, "")
	require.NoError(t, err)
	c.Close()
	_, err = say(t.Context(), c, echo, "")
	require.ErrorIs(t, err, errClosed)
}

func BenchmarkCall(b *testing.B) {
	s := startServer(b, "127.0.0.1:0")
	c := newTestClient(b, s.address)
	for b.Loop() {
		if _, err := say(b.Context(), c, echoQuickly, "text"); err != nil {
			b.Fatal(err)
		}
	}
}
