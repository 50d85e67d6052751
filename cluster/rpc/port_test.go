package rpc

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// whoAmI is a method that answers with who has called.
const whoAmI byte = 77

// testPort is a port with all that serves on it. Raft's connections say back what they are told.
type testPort struct {
	*Port
	server    *Server
	address   string
	crowded   atomic.Int32
	failed    atomic.Int32
	malformed atomic.Int32
	enrolled  atomic.Int32
}

func startPort(t testing.TB, security *Security) *testPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return servePort(t, listener, security, newHalfOpen(64, 64, graceTime), standardPortTimes)
}

func servePort(t testing.TB, listener net.Listener, security *Security, h *halfOpen, times portTimes) *testPort {
	t.Helper()
	p := &testPort{address: listener.Addr().String()}
	p.Port = newPort(listener, security, PortReport{
		Crowded: func(Caller) { p.crowded.Add(1) }, Failed: func(Caller, error) { p.failed.Add(1) }, Malformed: func() { p.malformed.Add(1) },
	}, h, times)
	handlers := map[byte]Handler{whoAmI: {Do: func(ctx context.Context, _ []byte) (proto.Message, error) {
		return wrapperspb.String(CallerOf(ctx).String()), nil
	}}, wait: {Do: func(ctx context.Context, _ []byte) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	count := func() { p.malformed.Add(1) }
	p.server = newServer(handlers, standardLimits, standardTimes, count, func(Caller) { p.crowded.Add(1) })
	joins := NewJoinServer(p, count, func(Caller) { p.crowded.Add(1) })
	var serving sync.WaitGroup
	serving.Go(func() { _ = p.server.Serve(p.RPC()) })
	serving.Go(func() { _ = joins.Serve(p.Join()) })
	serving.Go(func() { _ = p.Serve() })
	serving.Go(func() {
		for {
			conn, err := p.Raft().Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	})
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		p.server.Close()
		joins.Close()
		serving.Wait()
	})
	return p
}

// Enroll is part of Enroller.
func (p *testPort) Enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	p.enrolled.Add(1)
	if req.GetHost() == "" {
		return nil, &RefusedError{Result: &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: "no host"}}
	}
	return &clusterpb.EnrollReply{LeaderAddress: CallerOf(ctx).Role.String()}, nil
}

func (p *testPort) ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return new(clusterpb.ProveServerReply), nil
}

func (p *testPort) whoIs(t testing.TB, security *Security) (string, error) {
	c := NewChannel(p.address, security)
	defer c.Close()
	return say(t.Context(), c, whoAmI, "")
}

// echoed sends something on a connection for raft, and answers what comes back.
func (p *testPort) echoed(t testing.TB, security *Security) (net.Conn, error) {
	conn, err := security.Dial(t.Context(), p.address, ProtocolRaft)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
	if _, err := conn.Write([]byte("vote\n")); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil {
		require.Equal(t, "vote\n", line)
	}
	return conn, err
}

func TestAPortWithTLSKnowsItsCallers(t *testing.T) {
	of := newTestAuthority(t)
	p := startPort(t, of.security(t, RoleServer, "a"))
	client, server := of.security(t, RoleClient, "m"), of.security(t, RoleServer, "b")

	got, err := p.whoIs(t, client)
	require.NoError(t, err)
	require.Equal(t, "client m at 127.0.0.1", got)
	got, err = p.whoIs(t, server)
	require.NoError(t, err)
	require.Equal(t, "server b at 127.0.0.1", got)
	_, err = p.echoed(t, server)
	require.NoError(t, err)
	require.Zero(t, p.failed.Load())

	_, err = p.echoed(t, client)
	require.Error(t, err, "no server")
	require.Eventually(t, func() bool { return p.failed.Load() == 1 }, testWait, time.Millisecond)
	nobody := of.security(t, RoleClient, "")
	_, err = p.whoIs(t, nobody)
	require.ErrorContains(t, err, "certificate")
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = p.whoIs(t, newTestAuthority(t).security(t, RoleClient, "m"))
	require.ErrorContains(t, err, "certificate", "of another authority")
	require.Eventually(t, func() bool { return p.failed.Load() == 3 }, testWait, time.Millisecond)

	joiner := NewClient(p.address, nobody)
	joiner.calls.protocol = ProtocolJoin
	defer joiner.Close()
	reply, err := joiner.Enroll(t.Context(), &clusterpb.EnrollRequest{Host: "new"})
	require.NoError(t, err)
	require.Equal(t, "joiner", reply.GetLeaderAddress())
	refusal := new(RefusedError)
	_, err = joiner.Enroll(t.Context(), &clusterpb.EnrollRequest{})
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "no host", refusal.Error())
	_, err = joiner.Enroll(t.Context(), &clusterpb.EnrollRequest{Host: strings.Repeat("x", joinLimits.request)})
	require.Error(t, err, "too large for it")
	_, err = joiner.Status(t.Context(), &clusterpb.StatusRequest{})
	require.ErrorIs(t, err, NoMethod)
	require.Equal(t, int32(2), p.enrolled.Load())
}

func TestAPortWithoutTLSLooksAtFirstBytes(t *testing.T) {
	p := startPort(t, nil)
	got, err := p.whoIs(t, nil)
	require.NoError(t, err)
	require.Equal(t, "insecure at 127.0.0.1", got)
	_, err = p.echoed(t, nil)
	require.NoError(t, err)
	for i, text := range []string{"GET / HTTP/1.1\r\n", "LOCKFS", RaftPreface[:4] + "\n\n\n\n"} {
		conn, err := net.Dial("tcp", p.address)
		require.NoError(t, err)
		s := &stranger{t, conn}
		s.say(text)
		s.requireHungUp(text)
		require.Eventually(t, func() bool { return p.malformed.Load() == int32(i+1) }, testWait, time.Millisecond)
		_ = conn.Close()
	}
	got, err = p.whoIs(t, nil)
	require.NoError(t, err)
	require.Equal(t, "insecure at 127.0.0.1", got)
}

// TestTLSIsWantedByBothOrNone has each side say what the other one lacks.
func TestTLSIsWantedByBothOrNone(t *testing.T) {
	of := newTestAuthority(t)
	_, err := startPort(t, of.security(t, RoleServer, "a")).whoIs(t, nil)
	require.ErrorIs(t, err, NeedsTLS)
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = startPort(t, nil).whoIs(t, of.security(t, RoleClient, "m"))
	require.ErrorIs(t, err, NoTLS)
	require.ErrorIs(t, err, ErrUnreachable)
}

// TestHangingUpOnSome ends the connections of one host, with a call that waits, and no others.
func TestHangingUpOnSome(t *testing.T) {
	of := newTestAuthority(t)
	p := startPort(t, of.security(t, RoleServer, "a"))
	gone, stays := NewChannel(p.address, of.security(t, RoleServer, "b")), NewChannel(p.address, of.security(t, RoleServer, "c"))
	defer gone.Close()
	defer stays.Close()
	raft, err := p.echoed(t, of.security(t, RoleServer, "b"))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := say(t.Context(), gone, wait, "")
		ended <- err
	}()
	_, err = say(t.Context(), stays, whoAmI, "")
	require.NoError(t, err)
	isGone := func(c Caller) bool { return c.Host == "b" }
	require.Eventually(t, func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return len(p.server.conns) == 2
	}, testWait, time.Millisecond)
	kept := stays.live
	p.HangUp(isGone)
	p.server.HangUp(isGone)
	require.ErrorIs(t, <-ended, ErrUnreachable)
	_, err = raft.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	_, err = say(t.Context(), stays, whoAmI, "")
	require.NoError(t, err)
	require.Same(t, kept, stays.live)
}

// manyListener hands out connections that take no files.
type manyListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *manyListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *manyListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *manyListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// connect answers the other end of a connection from an address.
func (l *manyListener) connect(from netip.Addr) net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- &addressedConn{theirs, &net.TCPAddr{IP: from.AsSlice(), Port: 1}}
	return ours
}

type addressedConn struct {
	net.Conn
	from net.Addr
}

func (c *addressedConn) RemoteAddr() net.Addr { return c.from }

// TestManyHalfOpenConnections come from one address, and from as many, and say nothing. Meanwhile others
// are served.
func TestManyHalfOpenConnections(t *testing.T) {
	const many, most, mostPerAddress = 10_000, 100, 10
	of := newTestAuthority(t)
	mine, theirs := of.security(t, RoleClient, "m"), of.security(t, RoleServer, "a")
	for what, address := range map[string]func(n int) netip.Addr{
		"one address":    func(int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, 1}) },
		"many addresses": func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) },
	} {
		t.Run(what, func(t *testing.T) {
			listener := &manyListener{conns: make(chan net.Conn), closed: make(chan struct{})}
			h := newHalfOpen(most, mostPerAddress, 0)
			p := servePort(t, listener, theirs, h, portTimes{handshake: time.Hour, preface: time.Hour})
			var open []net.Conn
			for n := range many {
				open = append(open, listener.connect(address(n)))
				h.mu.Lock()
				require.LessOrEqual(t, h.all.Len(), most)
				for _, of := range h.addresses {
					require.LessOrEqual(t, of.Len(), mostPerAddress)
				}
				h.mu.Unlock()
				if n%500 != 0 {
					continue
				}
				secure := tls.Client(listener.connect(netip.MustParseAddr("10.2.0.1")), mine.Client(ProtocolRPC))
				require.NoError(t, secure.Handshake())
				require.NoError(t, secure.SetDeadline(time.Now().Add(testWait)))
				_, err := secure.Write([]byte(Preface + string(encodeBare(head{number: 1, kind: whoAmI}))))
				require.NoError(t, err)
				answer, err := readHead(bufio.NewReader(secure), MaxAnswer)
				require.NoError(t, err)
				require.Equal(t, uint64(1), answer.number)
				abort(secure)
			}
			limit := int32(most)
			if what == "one address" {
				limit = mostPerAddress
			}
			require.Eventually(t, func() bool { return p.crowded.Load() == many-limit }, testWait, time.Millisecond, "all others are counted")
			for _, conn := range open {
				_ = conn.Close()
			}
		})
	}
}

// TestNewConnectionsWaitForTheGracePeriod has those go that come while nobody has had his time.
func TestNewConnectionsWaitForTheGracePeriod(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	of := newTestAuthority(t)
	h := newHalfOpen(2, 2, time.Hour)
	p := servePort(t, listener, of.security(t, RoleServer, "a"), h, standardPortTimes)
	for range 2 {
		conn, err := net.Dial("tcp", p.address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.all.Len() == 2
	}, testWait, time.Millisecond)
	conn, err := net.Dial("tcp", p.address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	told, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, alert, told)
	require.Equal(t, int32(1), p.crowded.Load())
}

// TestHandshakesAreShort has a stranger send as many certificates as TLS takes, and a host as many as an
// authority gives it.
func TestHandshakesAreShort(t *testing.T) {
	of := newTestAuthority(t)
	p := startPort(t, of.security(t, RoleServer, "a"))
	for _, sends := range []struct{ certificates, failed int32 }{{16, 0}, {300, 1}} {
		security := of.security(t, RoleClient, "m")
		config := security.Client(ProtocolRPC)
		for range sends.certificates {
			config.Certificates[0].Certificate = append(config.Certificates[0].Certificate, of.certificate.Raw)
		}
		security.Client = func(string) *tls.Config { return config }
		who, err := p.whoIs(t, security)
		if sends.failed == 0 {
			require.NoError(t, err)
			require.Contains(t, who, "client m")
			large := NewChannel(p.address, security)
			defer large.Close()
			for range 4 { // what comes later has no such limit
				_, err = say(t.Context(), large, whoAmI, strings.Repeat("x", maxHandshake))
				require.NoError(t, err)
			}
		} else {
			require.Error(t, err)
		}
		require.Eventually(t, func() bool { return p.failed.Load() == sends.failed }, testWait, time.Millisecond)
	}
}

// TestAnEvictedConnectionIsNotRejected tells the two apart: it is no use to ask for another certificate
// where there is no room.
func TestAnEvictedConnectionIsNotRejected(t *testing.T) {
	of := newTestAuthority(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := servePort(t, listener, of.security(t, RoleServer, "a"), newHalfOpen(1, 1, testWait), standardPortTimes)
	slow, err := net.Dial("tcp", p.address)
	require.NoError(t, err)
	defer slow.Close()
	require.Eventually(t, func() bool {
		p.halfOpen.mu.Lock()
		defer p.halfOpen.mu.Unlock()
		return p.halfOpen.all.Len() == 1
	}, testWait, time.Millisecond)
	var turned atomic.Int32
	client := of.security(t, RoleClient, "m")
	client.OnRejected = func() { turned.Add(1) }
	_, err = p.whoIs(t, client)
	require.Error(t, err)
	require.Equal(t, int32(1), p.crowded.Load())
	require.Zero(t, turned.Load())

	other := newTestAuthority(t).issue(t, RoleClient, "m")
	stranger := &Security{OnRejected: client.OnRejected, Client: func(protocol string) *tls.Config {
		config := client.Client(protocol)
		config.Certificates = []tls.Certificate{other}
		return config
	}}
	require.NoError(t, slow.Close())
	require.Eventually(t, func() bool {
		_, err := p.whoIs(t, stranger)
		return err != nil && turned.Load() > 0
	}, testWait, time.Millisecond)
}
