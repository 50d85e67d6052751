package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"lockfs/cluster/clusterpb"
)

// soon are times that a test can wait for.
var soon = times{preface: 100 * time.Millisecond, frame: 100 * time.Millisecond, idle: 300 * time.Millisecond}

// stranger is a connection that says what a test wants.
type stranger struct {
	t testing.TB
	net.Conn
}

func connectTo(t testing.TB, s *testServer) *stranger {
	conn, err := net.Dial("tcp", s.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &stranger{t, conn}
}

func (s *stranger) say(text string) {
	_, err := s.Write([]byte(text))
	require.NoError(s.t, err)
}

// request is a frame.
func (s *stranger) request(number uint64, kind byte, text string) {
	frame, err := encode(head{number: number, kind: kind}, wrapperspb.String(text))
	require.NoError(s.t, err)
	s.say(string(frame))
}

// requireHungUp waits until the server has ended the connection, whatever it says before.
func (s *stranger) requireHungUp(why string) {
	s.t.Helper()
	require.NoError(s.t, s.SetReadDeadline(time.Now().Add(testWait)))
	for {
		if _, err := s.Read(make([]byte, 1<<16)); err != nil {
			require.False(s.t, errors.Is(err, os.ErrDeadlineExceeded), "nobody hung up: %s", why)
			return
		}
	}
}

func TestMalformed(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	huge := binary.BigEndian.AppendUint32(nil, MaxRequest+headSize+1)
	for i, text := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"LOCKFS1\n" + strings.Repeat("x", startSize),
		Preface + "\xff\xff\xff\xff" + strings.Repeat("x", headSize),
		Preface + "\x00\x00\x00\x01" + strings.Repeat("x", headSize),
		Preface + string(huge) + strings.Repeat("x", headSize),
	} {
		conn := connectTo(t, s)
		conn.say(text)
		conn.requireHungUp(text)
		require.Equal(t, int32(i+1), s.malformed.Load(), "%q", text)
	}
	got, err := say(t.Context(), newTestClient(t, s.address), echo, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)
}

// TestConnectionsToSilentPeersAreClosed has them stop at each point of a connection.
func TestConnectionsToSilentPeersAreClosed(t *testing.T) {
	s := startLimited(t, "127.0.0.1:0", standardLimits, soon)
	frame, err := encode(head{number: 1, kind: echo}, wrapperspb.String("text"))
	require.NoError(t, err)
	for _, text := range []string{
		"", Preface[:3], Preface, Preface + string(frame[:1]), Preface + string(frame[:startSize]), Preface + string(frame[:startSize+2]),
		Preface + string(frame), Preface + string(frame) + string(frame[:5]),
	} {
		conn := connectTo(t, s)
		conn.say(text)
		conn.requireHungUp(text)
	}
	require.Eventually(t, func() bool { return s.left() == standardLimits }, testWait, time.Millisecond, "nothing is counted any more")
}

// left is what there is room for.
func (s *testServer) left() limits {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	l := s.quota.limits
	l.connections -= int(s.quota.connections.Usage(0).Total)
	l.bytes -= s.quota.all.used
	l.coming -= s.quota.coming.used
	for _, h := range s.quota.peers {
		l.connectionsPerHost -= h.connections
		l.bytesPerHost -= h.used
		l.comingPerHost -= h.coming.used
	}
	return l
}

// TestAConnectionThatIsUsedStaysOpen has a call wait for longer than a connection may be silent.
func TestAConnectionThatIsUsedStaysOpen(t *testing.T) {
	s := startLimited(t, "127.0.0.1:0", standardLimits, soon)
	c := newTestClient(t, s.address)
	c.pauses = idleTimes{quiet: soon.idle / 6, unused: soon.idle / 3}
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := say(t.Context(), c, wait, "")
		ended <- err
	}()
	require.Eventually(t, func() bool { return time.Since(began) > 3*soon.idle }, testWait, time.Millisecond)
	require.Empty(t, ended)
	close(s.release)
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool { return s.left() == standardLimits }, testWait, time.Millisecond, "it is closed without a call")
	got, err := say(t.Context(), c, echo, "again")
	require.NoError(t, err)
	require.Equal(t, "again", got)
}

// TestServersThatStopAreNoticed has a server take a call that may wait for long, and then nothing more.
func TestServersThatStopAreNoticed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	c := newTestClient(t, listener.Addr().String())
	c.pauses.quiet = 50 * time.Millisecond
	_, err = say(t.Context(), c, wait, "")
	require.ErrorIs(t, err, errNoReply)
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestConnectionsAreLimited(t *testing.T) {
	for what, change := range map[string]func(*limits){
		"in all":           func(l *limits) { l.connections = 2 },
		"from one address": func(l *limits) { l.connectionsPerHost = 2 },
	} {
		t.Run(what, func(t *testing.T) {
			l := standardLimits
			change(&l)
			s := startLimited(t, "127.0.0.1:0", l, standardTimes)
			first := connectTo(t, s)
			second := newTestClient(t, s.address)
			_, err := say(t.Context(), second, echo, "")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return s.left().connections == l.connections-2 }, testWait, time.Millisecond)
			for n := range 3 {
				connectTo(t, s).requireHungUp("there are two")
				require.Equal(t, int32(n+1), s.crowded.Load())
			}
			third := newTestClient(t, s.address)
			_, err = say(t.Context(), third, echo, "")
			require.ErrorIs(t, err, ErrUnreachable)
			require.ErrorIs(t, err, Crowded)
			_, err = say(t.Context(), second, echo, "")
			require.NoError(t, err, "who is there stays")
			require.NoError(t, first.Close())
			require.Eventually(t, func() bool { _, err := say(t.Context(), third, echo, ""); return err == nil }, testWait, time.Millisecond)
		})
	}
}

// TestRequestsWaitForQuota has calls that wait take all that there is, of a connection, an address, or in
// all.
func TestRequestsWaitForQuota(t *testing.T) {
	const calls = 4
	for what, change := range map[string]func(*limits){
		"of a connection": func(l *limits) { l.bytesPerConnection = calls * (callCost + 100) },
		"of an address":   func(l *limits) { l.bytesPerHost = calls * (callCost + 100) },
		"in all":          func(l *limits) { l.bytes = calls * (callCost + 100) },
	} {
		t.Run(what, func(t *testing.T) {
			l := standardLimits
			change(&l)
			s := startLimited(t, "127.0.0.1:0", l, standardTimes)
			conn := connectTo(t, s)
			conn.say(Preface)
			for n := range 3 * calls {
				conn.request(uint64(n+1), wait, "")
			}
			require.Eventually(t, func() bool { return s.waiting.Load() == calls }, testWait, time.Millisecond)
			other := newTestClient(t, s.address)
			answered := make(chan error, 1)
			go func() {
				_, err := say(t.Context(), other, echo, "")
				answered <- err
			}()
			if what == "of a connection" {
				require.NoError(t, <-answered)
			}
			require.Equal(t, int32(calls), s.waiting.Load(), "the others are not read")
			close(s.release)
			if what != "of a connection" {
				require.NoError(t, <-answered)
			}
			require.NoError(t, conn.Close())
			other.Close()
			require.Eventually(t, func() bool { return s.left() == l }, testWait, time.Millisecond)
		})
	}
}

// busyNode does no command before it is released.
type busyNode struct {
	Node
	doing   atomic.Int32
	release chan struct{}
}

func (n *busyNode) Execute(context.Context, *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	n.doing.Add(1)
	<-n.release
	return new(clusterpb.ExecuteReply), nil
}

func (n *busyNode) KeepAlive(context.Context, *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	return &clusterpb.KeepAliveReply{Ttl: 7}, nil
}

// TestKeepalivesDoNotWaitForQuota has a mount ask for more than there is room for, of a connection, an
// address, or in all.
func TestKeepalivesDoNotWaitForQuota(t *testing.T) {
	const calls = 4
	for what, change := range map[string]func(*limits){
		"of a connection": func(l *limits) { l.bytesPerConnection = calls*callCost + 1 },
		"of an address":   func(l *limits) { l.bytesPerHost = calls*callCost + 1 },
		"in all":          func(l *limits) { l.bytes = calls*callCost + 1 },
	} {
		t.Run(what, func(t *testing.T) {
			l := standardLimits
			change(&l)
			node := &busyNode{release: make(chan struct{})}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			s := newServer(handlersOf(node), l, standardTimes, func() {}, func(Caller) {})
			go func() { _ = s.Serve(listener) }()
			defer s.Close()
			defer func() { _ = listener.Close() }()
			mount := NewClient(listener.Addr().String(), nil)
			defer mount.Close()
			var callers sync.WaitGroup
			for range 2 * calls {
				callers.Go(func() { _, _ = mount.Execute(t.Context(), new(clusterpb.ExecuteRequest)) })
			}
			require.Eventually(t, func() bool { return node.doing.Load() == calls }, testWait, time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			reply, err := mount.KeepAlive(ctx, new(clusterpb.KeepAliveRequest))
			require.NoError(t, err)
			require.Equal(t, int64(7), reply.GetTtl())
			require.Equal(t, int32(calls), node.doing.Load(), "the others wait")
			close(node.release)
			callers.Wait()
		})
	}
}

// TestAClientThatReadsNoRepliesIsClosed asks for many large ones.
func TestAClientThatReadsNoRepliesIsClosed(t *testing.T) {
	l := standardLimits
	l.bytesPerConnection = 4 << 20
	s := startLimited(t, "127.0.0.1:0", l, standardTimes)
	conn := connectTo(t, s)
	conn.say(Preface)
	frame, err := encode(head{number: 1, kind: large}, wrapperspb.String(""))
	require.NoError(t, err)
	for range 100 {
		if _, err := conn.Write(frame); err != nil {
			break
		}
	}
	require.Eventually(t, func() bool { return s.left() == l }, testWait, time.Millisecond)
	got, err := say(t.Context(), newTestClient(t, s.address), echo, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)
}

// next reads an answer and tells to which request it is.
func (s *stranger) next(from *bufio.Reader) uint64 {
	require.NoError(s.t, s.SetReadDeadline(time.Now().Add(testWait)))
	h, err := readHead(from, MaxAnswer)
	require.NoError(s.t, err)
	_, err = readMessage(from, h.length)
	require.NoError(s.t, err)
	return h.number
}

// TestRepliesWaitForQuota asks for more at once than there is room for, and takes it.
func TestRepliesWaitForQuota(t *testing.T) {
	const calls = 64
	for what, change := range map[string]func(*limits){
		"of a connection": func(l *limits) { l.bytesPerConnection = 4 << 20 },
		"of an address":   func(l *limits) { l.bytesPerHost = 4 << 20 },
		"in all":          func(l *limits) { l.bytes = 4 << 20 },
	} {
		t.Run(what, func(t *testing.T) {
			l := standardLimits
			change(&l)
			s := startLimited(t, "127.0.0.1:0", l, standardTimes)
			conn := connectTo(t, s)
			conn.say(Preface)
			for range calls {
				conn.request(1, large, "")
			}
			require.Eventually(t, func() bool { return s.left().bytes < l.bytes-4<<20 }, testWait, time.Millisecond, "they pile up")
			from := bufio.NewReader(conn)
			for range calls {
				conn.next(from)
			}
			require.NoError(t, conn.Close())
			require.Eventually(t, func() bool { return s.left() == l }, testWait, time.Millisecond)
		})
	}
}

// TestExpiredRepliesAreNotSent takes nothing until the time of the calls is up.
func TestExpiredRepliesAreNotSent(t *testing.T) {
	const calls = 64
	s := startServer(t, "127.0.0.1:0")
	conn := connectTo(t, s)
	conn.say(Preface)
	frame, err := encode(head{number: 1, kind: large, wait: 100 * time.Millisecond}, wrapperspb.String(""))
	require.NoError(t, err)
	for range calls {
		conn.say(string(frame))
	}
	began := time.Now()
	require.Eventually(t, func() bool { return time.Since(began) > time.Second }, testWait, time.Millisecond, "their time is up")
	conn.request(2, echo, "")
	from, came := bufio.NewReader(conn), 0
	for conn.next(from) != 2 {
		came++
	}
	require.Less(t, came, calls/2)
}

// TestAClosedServerEndsAllWaits has a request wait for room when its server ends.
func TestAClosedServerEndsAllWaits(t *testing.T) {
	l := standardLimits
	l.bytes = callCost + 100
	s := startLimited(t, "127.0.0.1:0", l, standardTimes)
	conn := connectTo(t, s)
	conn.say(Preface)
	conn.request(1, wait, "")
	conn.request(2, wait, "")
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
	s.stop()
	require.Eventually(t, func() bool { return s.left() == l }, testWait, time.Millisecond)
}
