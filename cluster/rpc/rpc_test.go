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
	refuse
	wait
)

type testServer struct {
	Server
	address   string
	listener  net.Listener
	release   chan struct{} // closed: waiting calls are answered
	waiting   atomic.Int32
	malformed atomic.Int32
}

func startServer(t testing.TB, address string) *testServer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := &testServer{address: listener.Addr().String(), listener: listener, release: make(chan struct{})}
	answer := func(_ context.Context, request []byte) (proto.Message, error) {
		text := new(wrapperspb.StringValue)
		return text, proto.Unmarshal(request, text)
	}
	s.Server = Server{
		MaxRequest: 1 << 10,
		Malformed:  func() { s.malformed.Add(1) },
		Methods: map[byte]Method{
			echo: {Do: answer}, echoQuickly: {Do: answer, Quick: true},
			refuse: {Do: func(context.Context, []byte) (proto.Message, error) { return nil, errors.New("no, thanks") }},
			wait: {Do: func(ctx context.Context, request []byte) (proto.Message, error) {
				s.waiting.Add(1)
				defer s.waiting.Add(-1)
				select {
				case <-s.release:
				case <-ctx.Done():
				}
				return answer(ctx, request)
			}},
		},
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) stop() {
	_ = s.listener.Close()
	s.Close()
}

func newTestClient(t testing.TB, address string) *Client {
	c := NewClient(address, time.Second)
	t.Cleanup(c.Close)
	return c
}

func say(ctx context.Context, c *Client, method byte, text string) (string, error) {
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
	_, err := say(t.Context(), c, refuse, "")
	require.ErrorContains(t, err, "no, thanks")
	_, err = say(t.Context(), c, 99, "")
	require.ErrorContains(t, err, "no method 99")
	require.Equal(t, int32(1), s.malformed.Load())
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
	require.Error(t, <-ended)
	require.Eventually(t, func() bool { return s.waiting.Load() == 0 }, testWait, time.Millisecond, "its call is told")
	_, err := say(t.Context(), c, echo, "")
	require.Error(t, err, "nobody is there")
	startServer(t, s.address)
	got, err := say(t.Context(), c, echo, "again")
	require.NoError(t, err)
	require.Equal(t, "again", got)
}

// TestSilentHostsAreLeft has a host take a call and say nothing, as one does that is frozen.
func TestSilentHostsAreLeft(t *testing.T) {
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
		ctx, cancel := context.WithTimeout(t.Context(), silence+silence/10)
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

func TestMalformed(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	for i, text := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		Preface + "\xff\xff\xff\xff" + strings.Repeat("x", headSize),
		Preface + "\x00\x00\x00\x01" + strings.Repeat("x", headSize),
	} {
		conn, err := net.Dial("tcp", s.address)
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(testWait)))
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, errors.Is(err, context.DeadlineExceeded), "%q is not hung up on", text)
		require.Equal(t, int32(i+1), s.malformed.Load(), "%q", text)
		require.NoError(t, conn.Close())
	}
	c := newTestClient(t, s.address)
	_, err := say(t.Context(), c, echo, strings.Repeat("x", s.MaxRequest+1))
	require.Error(t, err, "too large")
	require.Equal(t, int32(4), s.malformed.Load())
	got, err := say(t.Context(), c, echo, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)
}

func TestClosedClientsCallNobody(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	c := newTestClient(t, s.address)
	_, err := say(t.Context(), c, echo, "")
	require.NoError(t, err)
	c.Close()
	_, err = say(t.Context(), c, echo, "")
	require.ErrorIs(t, err, errClosed)
}

func FuzzRead(f *testing.F) {
	message, err := encode(7, echo, wrapperspb.String("text"))
	require.NoError(f, err)
	f.Add(string(message))
	f.Fuzz(func(t *testing.T, text string) {
		f, err := read(bufio.NewReader(strings.NewReader(text)), 1<<10)
		require.True(t, err != nil || len(f.message) <= 1<<10)
	})
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
