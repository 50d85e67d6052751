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

// discover asks a server with these credentials.
func discover(t testing.TB, server *Credentials, fingerprint Fingerprint, floor time.Time) (*x509.Certificate, error) {
	t.Helper()
	address, served := serveOnce(t, server.ServerConfig(stateOf(now), allProtocols...))
	authority, err := Discover(t.Context(), address, fingerprint, floor)
	<-served
	return authority, err
}

func TestJoin(t *testing.T) {
	authority := newAuthority(t)
	server := host(t, authority, Server, "s1", now)
	found, err := discover(t, server, authority.Fingerprint(), now)
	require.NoError(t, err)
	require.Equal(t, authority.Certificate(), found)

	met := connect(t, server.ServerConfig(stateOf(now, authority), allProtocols...), JoinConfig(found, now))
	met.requireLetIn(t)
	require.Equal(t, ProtocolJoin, met.state.NegotiatedProtocol)
}

// Whoever stands in between has seen every certificate that was ever sent, and has hosts' certificates of
// the cluster, but none of a server with its key.
func TestManInTheMiddle(t *testing.T) {
	authority, his := newAuthority(t), newAuthority(t)
	root := authority.Certificate()
	server := host(t, authority, Server, "s1", now)
	client := host(t, authority, Client, "s1", now)
	own := host(t, his, Server, "s1", now)
	ended := host(t, authority, Server, "s2", now.Add(-2*Validity))

	leafOfLeaf := newKey(t)
	sibling, err := sign(&x509.Certificate{
		SerialNumber: newSerial(), DNSNames: server.Leaf().DNSNames, NotBefore: now, NotAfter: now.Add(Validity),
		ExtKeyUsage: server.Leaf().ExtKeyUsage,
	}, client.Leaf(), &leafOfLeaf.private.PublicKey, client.Key().private)
	require.NoError(t, err)
	// An authority of his own that calls itself as the cluster's, key identifier and all.
	alike := &Authority{private: his.private}
	alike.certificate, err = sign(root, withKey(root, his.private), &his.private.PublicKey, his.private)
	require.NoError(t, err)
	likeOwn := host(t, alike, Server, "s1", now)

	for what, test := range map[string]struct {
		him  *Credentials
		want Reason
	}{
		"his own authority":                             {own, OtherCluster},
		"his own authority, of the same name":           {likeOwn, OtherCluster},
		"his own, and the right root beside":            {forged(own.Key().private, own.Leaf(), his.Certificate(), root), OtherCluster},
		"of the same name, and the right root":          {forged(likeOwn.Key().private, likeOwn.Leaf(), root), OtherCluster},
		"a client's leaf of the cluster":                {forged(client.Key().private, client.Leaf(), root), WrongRole},
		"a leaf of a client's leaf":                     {forged(leafOfLeaf.private, sibling, client.Leaf(), root), OtherCluster},
		"a leaf of a server's leaf, and the server's":   {forged(leafOfLeaf.private, sibling, server.Leaf(), client.Leaf(), root), OtherCluster},
		"a server that had expired when the token came": {forged(ended.Key().private, ended.Leaf(), root), Expired},
		"the root alone":                                {forged(his.private, root), BadCertificate},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := discover(t, test.him, authority.Fingerprint(), now)
			requireRefused(t, err, test.want)
			met := connect(t, test.him.ServerConfig(stateOf(now), ProtocolJoin), JoinConfig(root, now))
			requireRefused(t, met.client, test.want)
		})
	}

	// The right certificates, without the key.
	replayed := forged(own.Key().private, server.Leaf(), root)
	_, err = discover(t, replayed, authority.Fingerprint(), now)
	require.Error(t, err)
	met := connect(t, replayed.ServerConfig(stateOf(now), ProtocolJoin), JoinConfig(root, now))
	require.Error(t, met.client)

	_, err = discover(t, own, authority.Fingerprint(), now)
	require.ErrorContains(t, err, "another cluster than the token")
	require.ErrorContains(t, err, his.Fingerprint().Short())
}

func TestDiscoverRefusesNonServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	accepted := make(chan net.Conn, 2)
	go func() {
		for range cap(accepted) {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()

	answered := make(chan error, 1)
	go func() {
		conn := <-accepted
		_, err := conn.Write([]byte("this is not TLS"))
		answered <- err
		conn.Close()
	}()
	_, err = Discover(t.Context(), address, Fingerprint{}, now)
	require.ErrorContains(t, err, "--insecure")
	require.ErrorContains(t, err, address)
	require.NoError(t, <-answered)

	// One that says nothing.
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := Discover(ctx, address, Fingerprint{}, now)
		result <- err
	}()
	silent := <-accepted
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	silent.Close()

	listener.Close()
	_, err = Discover(t.Context(), address, Fingerprint{}, now)
	require.ErrorContains(t, err, address)

	// A server whose policy is not ours: it speaks TLS, and nothing of lockfs.
	server := host(t, newAuthority(t), Server, "s1", now)
	other := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return server.current.Load().presented, nil }}
	address, served := serveOnce(t, other)
	_, err = Discover(t.Context(), address, server.Signer(), now)
	requireRefused(t, err, OtherCluster)
	<-served
}
