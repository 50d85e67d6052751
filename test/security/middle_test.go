package security

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A middle stands between hosts and a server and ends their TLS with what he has himself.
type middle struct {
	address string
	asked   atomic.Int32 // by so many connections
	mu      sync.Mutex
	heard   []byte // of what was for the server
}

func startMiddle(t testing.TB, h *hosts.Host, port string, certificate *tls.Certificate) *middle {
	t.Helper()
	m := &middle{address: h.Addr() + port}
	listener, err := h.Listen(m.address)
	require.NoError(t, err)
	config := &tls.Config{
		Certificates: []tls.Certificate{*certificate}, NextProtos: []string{protocolJoin, protocolRPC}, ClientAuth: tls.RequestClientCert,
	}
	go m.serve(tls.NewListener(listener, config))
	return m
}

func (m *middle) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		m.asked.Add(1)
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			if err := conn.(*tls.Conn).Handshake(); err != nil {
				return
			}
			text, _ := io.ReadAll(conn)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.heard = append(m.heard, text...)
		}()
	}
}

func (m *middle) said() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard
}

// relay passes on all that comes, unread.
func relay(t testing.TB, h *hosts.Host, port, to string) {
	t.Helper()
	listener, err := h.Listen(h.Addr() + port)
	require.NoError(t, err)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := h.Dial(to)
			if err != nil {
				_ = conn.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
			go func() { _, _ = io.Copy(conn, server); _ = conn.Close() }()
		}
	}()
}

// TestAManInTheMiddle stands where a token says that the servers are. He is told no secret, and nobody mounts what he has.
func TestAManInTheMiddle(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	evil := c.Net.Host("evil")
	server := c.Nodes[0].Addr()
	conn, err := visitor{host: evil}.connect(server, protocolJoin)
	require.NoError(t, err)
	var right [][]byte // what the server shows everybody
	for _, certificate := range conn.ConnectionState().PeerCertificates {
		right = append(right, certificate.Raw)
	}
	own := newAuthority(t)
	names := []string{"server.lockfs", "a.server.lockfs"}

	joiner := c.AddClient(t, "m")
	with := parseToken(t, c.JoinToken(t, "client"))
	mount := func(address string) []string {
		with.addresses = []string{address}
		return []string{"mount", "--wait", "3s", "--identity", c.IdentityDir("m"), "--token", with.text(), c.Mount}
	}
	for i, bad := range []struct {
		what        string
		certificate *tls.Certificate
	}{
		{"his own authority", own.issue(t, names, own.certificate.Raw)},
		{"his own authority, and what the server shows", own.issue(t, names, right...)},
		{"what the server shows, without its key", &tls.Certificate{Certificate: right, PrivateKey: newKey(t)}},
	} {
		m := startMiddle(t, evil, []string{":7420", ":7421", ":7422"}[i], bad.certificate)
		args := mount(m.address)
		_, err := joiner.Run(c.Program, args...)
		require.ErrorContains(t, err, "lockfs: ", bad.what)
		require.Positive(t, m.asked.Load(), "%s: he was asked", bad.what)
		require.Empty(t, m.said(), "%s: he was told something", bad.what)
	}

	// Through somebody who only passes on what comes it works.
	relay(t, evil, ":7423", server)
	args := mount(evil.Addr() + ":7423")
	p := joiner.Start(c.Program, args...)
	require.NoError(t, p.WaitOutput("lockfs: ready at "))
	testcluster.RequireLocking(t, c, joiner, c.Nodes[0].Host)
	require.NoError(t, p.Stop())

	// Who is in does not speak to him either.
	m := startMiddle(t, evil, ":7424", own.issue(t, names, right...))
	_, err = joiner.Run(c.Program, "status", "--servers", m.address, "--identity", c.IdentityDir("m"))
	require.Error(t, err)
	_, err = joiner.Run(c.Program, "mount", "--wait", "3s", "--servers", m.address, "--identity", c.IdentityDir("m"), c.Mount)
	require.Error(t, err)
	require.Positive(t, m.asked.Load())
	require.Empty(t, m.said())
}
