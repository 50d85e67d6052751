package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func newAuthority(t testing.TB) *Authority {
	t.Helper()
	authority, err := NewAuthority(now)
	require.NoError(t, err)
	return authority
}

func newKey(t testing.TB) *Key {
	t.Helper()
	key, err := NewKey()
	require.NoError(t, err)
	return key
}

func name(t testing.TB, role Role, host string) Name {
	t.Helper()
	name, err := ParseName(role, host)
	require.NoError(t, err)
	return name
}

// issue is a leaf for a key, made the way a cluster does it.
func issue(t testing.TB, authority *Authority, key *Key, name Name, at time.Time) []byte {
	t.Helper()
	der, err := key.Request(name)
	require.NoError(t, err)
	request, err := ParseRequest(der)
	require.NoError(t, err)
	leaf, err := authority.Issue(request, at, Validity)
	require.NoError(t, err)
	return leaf
}

func parsed(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate
}

// host has credentials of an authority, in memory.
func host(t testing.TB, authority *Authority, role Role, called string, at time.Time) *Credentials {
	t.Helper()
	key := newKey(t)
	credentials, err := NewCredentials(key, IssuedCert{
		Leaf:        issue(t, authority, key, name(t, role, called), at),
		Authorities: [][]byte{authority.Certificate().Raw},
	})
	require.NoError(t, err)
	return credentials
}

// state is a Judge of whom a server's state has.
type state struct {
	authorities []*x509.Certificate
	now         time.Time
	hosts       map[Name]KeyHash
	revoked     map[KeyHash]bool
}

func stateOf(at time.Time, authorities ...*Authority) *state {
	s := &state{now: at, hosts: make(map[Name]KeyHash), revoked: make(map[KeyHash]bool)}
	for _, authority := range authorities {
		s.authorities = append(s.authorities, authority.Certificate())
	}
	return s
}

func (s *state) admit(hosts ...*Credentials) *state {
	for _, host := range hosts {
		s.hosts[host.Name()] = host.Key().Hash()
	}
	return s
}

func (s *state) Authorities() []*x509.Certificate { return s.authorities }
func (s *state) Now() time.Time                   { return s.now }

func (s *state) Status(name Name, key KeyHash) Status {
	if s.revoked[key] {
		return Revoked
	}
	if known, found := s.hosts[name]; found && known == key {
		return Admitted
	}
	return Unknown
}

// meeting is what both sides said of one handshake.
type meeting struct {
	server, client error
	state          tls.ConnectionState // the server's
}

func (m meeting) requireLetIn(t testing.TB) {
	t.Helper()
	require.NoError(t, m.server)
	require.NoError(t, m.client)
}

// connect is one handshake over loopback. The client has read an answer or an alert.
func connect(t testing.TB, server, client *tls.Config) meeting {
	t.Helper()
	address, served := serveOnce(t, server)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	dialed := tls.Client(conn, client)
	defer conn.Close()
	err = dialed.HandshakeContext(t.Context())
	if err == nil {
		_, err = dialed.Read(make([]byte, 1))
	}
	conn.Close()
	result := <-served
	return meeting{server: result.err, client: err, state: result.state}
}

type handshake struct {
	err   error
	state tls.ConnectionState
}

// serveOnce accepts one connection and says one byte on it when it is let in.
func serveOnce(t testing.TB, config *tls.Config) (address string, served <-chan handshake) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	results := make(chan handshake, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			results <- handshake{err: err}
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		accepted := tls.Server(conn, config)
		err = accepted.HandshakeContext(context.Background())
		if err == nil {
			_, err = accepted.Write([]byte("!"))
		}
		results <- handshake{err: err, state: accepted.ConnectionState()}
	}()
	return listener.Addr().String(), results
}

// requireRefused demands a certain reason of a *Refused, whose words it answers.
func requireRefused(t testing.TB, err error, reason Reason) string {
	t.Helper()
	var refused *Refused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, reason, refused.Reason, err.Error())
	return refused.Error()
}

// requireTurnedAway demands the other side's word, in TLS, that it does not let us in.
func requireTurnedAway(t testing.TB, err error) {
	t.Helper()
	var operation *net.OpError
	require.ErrorAs(t, err, &operation)
	require.Equal(t, "remote error", operation.Op, err.Error())
}
