package rpc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/budget"
)

// TestAWaiterForQuotaMayLeave has a connection end, in each way, with a request that there is no room for
// and others behind it.
func TestAWaiterForQuotaMayLeave(t *testing.T) {
	for what, end := range map[string]func(*testServer, *stranger){
		"it hangs up":    func(_ *testServer, s *stranger) { _ = s.Close() },
		"it sends a FIN": func(_ *testServer, s *stranger) { _ = s.Conn.(halfCloser).CloseWrite() },
		"is hung up on":  func(s *testServer, _ *stranger) { s.HangUp(func(Caller) bool { return true }) },
	} {
		t.Run(what, func(t *testing.T) {
			l := standardLimits
			l.bytesPerConnection = callCost + 100
			s := startLimited(t, "127.0.0.1:0", l, standardTimes)
			conn := connectTo(t, s)
			conn.say(Preface)
			for n := range 3 {
				conn.request(uint64(n+1), wait, "")
			}
			require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, testWait, time.Millisecond)
			end(s, conn)
			require.Eventually(t, func() bool { return s.waiting.Load() == 0 }, testWait, time.Millisecond, "its call is told")
			require.Eventually(t, func() bool { return s.left() == l }, testWait, time.Millisecond)
			require.Equal(t, int32(1), s.asked.Load(), "the others were not done")
		})
	}
}

// TestIncompleteRequestsBlockNoOthers has hosts begin as many large requests as they may and not end them.
func TestIncompleteRequestsBlockNoOthers(t *testing.T) {
	l := standardLimits
	l.coming, l.comingPerHost = 4*MaxRequest, 2*MaxRequest
	s := startLimited(t, "127.0.0.1:0", l, standardTimes)
	h := head{number: 1, kind: echo}
	begun := h.put(make([]byte, startSize+MaxRequest))[:startSize+100]
	for range 8 {
		conn := connectTo(t, s)
		conn.say(Preface + string(begun))
	}
	require.Eventually(t, func() bool { return s.left().comingPerHost == 0 }, testWait, time.Millisecond)
	require.Equal(t, l.bytes, s.left().bytes, "there is room for all that comes")
	ctx, cancel := context.WithTimeout(t.Context(), testWait/2)
	defer cancel()
	got, err := say(ctx, newTestClient(t, s.address), echo, "small")
	require.NoError(t, err)
	require.Equal(t, "small", got)
	_, err = say(ctx, newTestClient(t, s.address), echo, strings.Repeat("x", 8<<10))
	require.ErrorIs(t, err, context.DeadlineExceeded, "what is not small waits for those of its own host")
}

// TestLargeRequestsComeOneAfterTheOther has more of them than there is room for.
func TestLargeRequestsComeOneAfterTheOther(t *testing.T) {
	l := standardLimits
	l.coming, l.comingPerHost = MaxRequest, MaxRequest
	s := startLimited(t, "127.0.0.1:0", l, standardTimes)
	text := strings.Repeat("x", MaxRequest-10)
	failures := make(chan error, 8)
	for range cap(failures) {
		c := newTestClient(t, s.address)
		go func() {
			got, err := say(t.Context(), c, echo, text)
			if err == nil && got != text {
				err = fmt.Errorf("%d bytes came back", len(got))
			}
			failures <- err
		}()
	}
	for range cap(failures) {
		require.NoError(t, <-failures)
	}
	require.Eventually(t, func() bool { return s.left().coming == l.coming }, testWait, time.Millisecond)
}

// TestStrangersDoNotBlockJoiningHosts has them hold all connections that there may be, of one address and
// in all.
func TestStrangersDoNotBlockJoiningHosts(t *testing.T) {
	for what, addresses := range map[string]int{
		"at the joiner's address": 1, "in all": withinFiles(joinLimits, filesOfJoiners).connections / joinLimits.connectionsPerHost,
	} {
		t.Run(what, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			s := NewJoinServer(new(testPort), func() {}, func(Caller) {})
			go func() { _ = s.Serve(listener) }()
			defer s.Close()
			defer listener.Close()
			first := make([]net.Conn, 0, addresses)
			for i := range addresses {
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(i+1))}}
				for n := range joinLimits.connectionsPerHost {
					conn, err := from.DialContext(t.Context(), "tcp", listener.Addr().String())
					require.NoError(t, err)
					defer conn.Close()
					_, err = conn.Write([]byte(Preface))
					require.NoError(t, err)
					if n == 0 {
						first = append(first, conn)
					}
				}
			}
			require.Eventually(t, func() bool { return s.count() == addresses*joinLimits.connectionsPerHost }, testWait, time.Millisecond)
			joiner := newTestClient(t, listener.Addr().String())
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				require.NoError(t, joiner.Call(context.Background(), enrollMethod, &clusterpb.EnrollRequest{Host: "h"}, new(clusterpb.EnrollReply)))
			}, joinTimes.idle/2, 10*time.Millisecond, "before the strangers are hung up on for their silence")
			require.LessOrEqual(t, s.count(), addresses*joinLimits.connectionsPerHost)
			_ = first[0].SetReadDeadline(time.Now().Add(testWait))
			_, err = first[0].Read(make([]byte, 1))
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "who came first has gone")
		})
	}
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// TestAPeerBeyondItsLimitMakesRoomItself, also while a closed connection still counts and the new one is not known yet.
func TestAPeerBeyondItsLimitMakesRoomItself(t *testing.T) {
	l := joinLimits
	l.connections, l.connectionsPerHost = 8, 2
	s := newServer(nil, l, joinTimes, func() {}, func(Caller) {})
	s.settled = time.Nanosecond
	connect := func(address string) (caller Caller, conn net.Conn) {
		caller = Caller{Role: RoleJoiner, Address: netip.MustParseAddr(address)}
		_, err := s.quota.connect(caller, budget.Ordinary)
		require.NoError(t, err)
		conn, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		require.True(t, s.register(conn, caller))
		return caller, conn
	}
	_, victim := connect("192.0.2.1")
	by, first := connect("192.0.2.2")
	_, second := connect("192.0.2.2")
	for _, goes := range []net.Conn{first, second} {
		require.True(t, s.makeRoom(by))
		require.NotContains(t, s.conns, goes)
	}
	require.False(t, s.makeRoom(by))
	require.Contains(t, s.conns, victim)
}
