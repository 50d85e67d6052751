package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var allProtocols = []string{ProtocolRaft, ProtocolRPC, ProtocolJoin}

// forged is credentials that show any chain with any key.
func forged(private any, chain ...*x509.Certificate) *Credentials {
	shown := &tls.Certificate{PrivateKey: private}
	for _, certificate := range chain {
		shown.Certificate = append(shown.Certificate, certificate.Raw)
	}
	c := new(Credentials)
	c.current.Store(&bundle{presented: shown, withRoots: shown})
	return c
}

// withKey is a certificate that says the same of itself, with another key.
func withKey(certificate *x509.Certificate, private *ecdsa.PrivateKey) *x509.Certificate {
	alike := *certificate
	alike.PublicKey = &private.PublicKey
	return &alike
}

func TestAdmittedPeers(t *testing.T) {
	authority, stranger := newAuthority(t), newAuthority(t)
	server := host(t, authority, Server, "s1", now)
	other := host(t, authority, Server, "s2", now)
	client := host(t, authority, Client, "m1", now)
	unknownServer := host(t, authority, Server, "s3", now)
	unknown := host(t, authority, Client, "m2", now)
	enrolledAgain := host(t, authority, Client, "m1", now)
	old := host(t, authority, Client, "old", now.Add(-Validity-time.Second))
	oldServer, oldUnknown := host(t, authority, Server, "o1", now.Add(-2*Validity)), host(t, authority, Server, "o2", now.Add(-2*Validity))
	gone, goneServer := host(t, authority, Client, "gone", now), host(t, authority, Server, "gone", now)
	serverAsClient := host(t, authority, Client, "s2", now)
	judge := stateOf(now, authority).admit(server, other, client, old, oldServer, gone, goneServer)
	judge.revoked[gone.Key().Hash()], judge.revoked[goneServer.Key().Hash()] = true, true

	const letIn = Reason(0)
	for _, test := range []struct {
		what            string
		who             *Credentials
		onRPC, onRaft   Reason
		words, whatToDo string
	}{
		{"a server", other, letIn, letIn, "", ""},
		{"a client", client, letIn, WrongRole, "client m1", "no server"},
		{"another cluster's server", host(t, stranger, Server, "s1", now), OtherCluster, OtherCluster, stranger.Fingerprint().Short(), "token"},
		{"another cluster's client", host(t, stranger, Client, "m1", now), OtherCluster, OtherCluster, stranger.Fingerprint().Short(), "token"},
		{"a client that the state does not have", unknown, NotAdmitted, WrongRole, "client m2", ""},
		{"a server that the state does not have yet", unknownServer, NotAdmitted, letIn, "server s3", "lockfs up TOKEN"},
		{"a host with another key", enrolledAgain, NotAdmitted, WrongRole, "client m1", ""},
		{"a server's name as a client's", serverAsClient, NotAdmitted, WrongRole, "client s2", ""},
		{"an expired one", old, Expired, WrongRole, "client old", ""},
		{"an expired server", oldServer, letIn, letIn, "", ""},
		{"an expired server that the state does not have", oldUnknown, Expired, Expired, "server o2", "lockfs up"},
		{"a revoked client", gone, KeyRevoked, WrongRole, "client gone", ""},
		{"a revoked server", goneServer, KeyRevoked, KeyRevoked, "server gone", "token"},
	} {
		for protocol, want := range map[string]Reason{ProtocolRPC: test.onRPC, ProtocolRaft: test.onRaft} {
			t.Run(test.what+" on "+protocol, func(t *testing.T) {
				clients := test.who.ClientConfig(server.Verifier(nil), protocol)
				met := connect(t, server.ServerConfig(judge, allProtocols...), clients)
				if want == letIn {
					met.requireLetIn(t)
					require.Equal(t, protocol, met.state.NegotiatedProtocol)
					name, key, err := Peer(&met.state)
					require.NoError(t, err)
					require.Equal(t, test.who.Name(), name)
					require.Equal(t, test.who.Key().Hash(), key)
					return
				}
				words := requireRefused(t, met.server, want)
				require.Contains(t, words, test.words)
				require.Contains(t, words, test.whatToDo)
				requireTurnedAway(t, met.client)
			})
		}
	}
}

func TestForgedCertificates(t *testing.T) {
	authority := newAuthority(t)
	server := host(t, authority, Server, "s1", now)
	client := host(t, authority, Client, "m1", now)
	judge := stateOf(now, authority).admit(server, client)

	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := func(names ...string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: newSerial(), DNSNames: names, NotBefore: now, NotAfter: now.Add(Validity),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		}
	}
	signed := func(template, parent *x509.Certificate, public, private any) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, private)
		require.NoError(t, err)
		return parsed(t, der)
	}
	root, private := authority.certificate, authority.private
	key := newKey(t).private
	leaf := client.Leaf()
	for what, test := range map[string]struct {
		who  *Credentials
		want Reason
	}{
		"nothing":                    {forged(nil), NoCertificate},
		"signed by itself":           {forged(key, signed(template("m1.client.lockfs"), template("m1.client.lockfs"), &key.PublicKey, key)), OtherCluster},
		"signed by a leaf":           {forged(key, signed(template("m1.client.lockfs"), leaf, &key.PublicKey, client.Key().private), leaf, root), OtherCluster},
		"another root of that name":  {forged(key, signed(template("m1.client.lockfs"), withKey(root, key), &key.PublicKey, key), root), OtherCluster},
		"an authority itself":        {forged(private, root), BadCertificate},
		"another kind of key":        {forged(p384, signed(template("m1.client.lockfs"), root, &p384.PublicKey, private)), BadCertificate},
		"an RSA key":                 {forged(weak, signed(template("m1.client.lockfs"), root, &weak.PublicKey, private)), BadCertificate},
		"no name":                    {forged(key, signed(template(), root, &key.PublicKey, private)), BadCertificate},
		"two names":                  {forged(key, signed(template("m1.client.lockfs", "m2.client.lockfs"), root, &key.PublicKey, private)), BadCertificate},
		"for another usage":          {forged(key, signed(&x509.Certificate{SerialNumber: newSerial(), DNSNames: []string{"m1.client.lockfs"}, NotBefore: now, NotAfter: now.Add(Validity), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}, root, &key.PublicKey, private)), BadCertificate},
		"through an authority's RSA": {throughRSA(t, authority), OtherCluster},
	} {
		t.Run(what, func(t *testing.T) {
			met := connect(t, server.ServerConfig(judge, allProtocols...), test.who.ClientConfig(server.Verifier(nil), ProtocolRPC))
			requireRefused(t, met.server, test.want)
			requireTurnedAway(t, met.client)
		})
	}

	// Somebody shows the certificate of a host that is admitted, and has not its key.
	thief := forged(key, leaf)
	met := connect(t, server.ServerConfig(judge, ProtocolRPC), thief.ClientConfig(server.Verifier(nil), ProtocolRPC))
	require.Error(t, met.server)
}

// throughRSA is a leaf of an intermediate authority with another kind of key than ours have.
func throughRSA(t testing.TB, authority *Authority) *Credentials {
	t.Helper()
	between, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := authorityTemplate(authority.certificate.Subject)
	template.SubjectKeyId = []byte{1}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, &between.PublicKey, authority.private)
	require.NoError(t, err)
	intermediate := parsed(t, der)
	key := newKey(t)
	der, err = x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: newSerial(), DNSNames: []string{"m1.client.lockfs"}, NotBefore: now, NotAfter: now.Add(Validity),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, intermediate, &key.private.PublicKey, between)
	require.NoError(t, err)
	return forged(key.private, parsed(t, der), intermediate)
}

func TestProtocols(t *testing.T) {
	authority := newAuthority(t)
	server, client := host(t, authority, Server, "s1", now), host(t, authority, Client, "m1", now)
	judge := stateOf(now, authority).admit(server, client)
	config := func(protocols ...string) *tls.Config {
		config := client.ClientConfig(client.Verifier(nil), ProtocolRPC)
		config.NextProtos = protocols
		return config
	}
	for what, bad := range map[string]*tls.Config{
		"nothing": config(), "another protocol": config("h2"), "one not served": config(ProtocolRaft),
	} {
		met := connect(t, server.ServerConfig(judge, ProtocolRPC, ProtocolJoin), bad)
		require.ErrorIs(t, met.server, errProtocol, what)
		require.Error(t, met.client, what)
	}
	other := server.ServerConfig(judge, ProtocolRPC)
	other.GetConfigForClient = nil
	other.NextProtos, other.Certificates = nil, []tls.Certificate{*server.current.Load().presented}
	require.ErrorIs(t, connect(t, other, config(ProtocolRPC)).client, errProtocol, "a service that knows no protocols")
	old := config(ProtocolRPC)
	old.MaxVersion, old.MinVersion = tls.VersionTLS12, tls.VersionTLS12
	met := connect(t, server.ServerConfig(judge, allProtocols...), old)
	require.Error(t, met.server)
	require.Error(t, met.client)

	// Who offers to join and more is asked for a certificate, however he orders it.
	stranger := forged(nil)
	for _, offer := range [][]string{{ProtocolJoin, ProtocolRPC}, {ProtocolRPC, ProtocolJoin}} {
		for _, serves := range [][]string{{ProtocolJoin, ProtocolRPC}, {ProtocolRPC, ProtocolJoin}} {
			config := stranger.ClientConfig(client.Verifier(nil), ProtocolRPC)
			config.NextProtos, config.VerifyConnection = offer, nil
			met := connect(t, server.ServerConfig(judge, serves...), config)
			if met.server == nil {
				require.NoError(t, met.client)
				require.Equal(t, ProtocolJoin, met.state.NegotiatedProtocol)
			} else {
				requireRefused(t, met.server, NoCertificate)
			}
		}
	}
}

// A connection is never taken up again without a look at who it is.
func TestNoSessionIsResumed(t *testing.T) {
	authority := newAuthority(t)
	server, client := host(t, authority, Server, "s1", now), host(t, authority, Client, "m1", now)
	serverConfig := server.ServerConfig(stateOf(now, authority).admit(client), allProtocols...)
	clientConfig := client.ClientConfig(client.Verifier(nil), ProtocolRPC)
	clientConfig.SessionTicketsDisabled = false
	clientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	for range 2 {
		met := connect(t, serverConfig, clientConfig)
		met.requireLetIn(t)
		require.False(t, met.state.DidResume)
	}
}

// Other programs know a server by the authorities alone, with their own rules.
func TestOtherProgramsKnowAServer(t *testing.T) {
	authority, err := NewAuthority(time.Now())
	require.NoError(t, err)
	client := host(t, authority, Client, "m1", time.Now())
	config := &tls.Config{
		RootCAs: x509.NewCertPool(), ServerName: ServerName, NextProtos: []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*client.current.Load().presented},
	}
	config.RootCAs.AddCert(authority.Certificate())
	judge := stateOf(time.Now(), authority).admit(client)
	connect(t, host(t, authority, Server, "s1", time.Now()).ServerConfig(judge, "http/1.1"), config).requireLetIn(t)
	met := connect(t, client.ServerConfig(judge, "http/1.1"), config)
	require.Error(t, met.client, "a client's certificate is no server's for them either")
}

func TestJoiningNeedsNoCertificate(t *testing.T) {
	authority := newAuthority(t)
	server, client := host(t, authority, Server, "s1", now), host(t, authority, Client, "m1", now.Add(-2*Validity))
	judge := stateOf(now, authority).admit(server)
	met := connect(t, server.ServerConfig(judge, allProtocols...), client.ClientConfig(client.Verifier(nil), ProtocolJoin))
	met.requireLetIn(t)
	require.Empty(t, met.state.PeerCertificates, "an expired one is not shown")
	_, _, err := Peer(&met.state)
	requireRefused(t, err, NoCertificate)
}

func TestServerNames(t *testing.T) {
	authority := newAuthority(t)
	client := host(t, authority, Client, "m1", now)
	clock := func() time.Time { return now.Add(40 * 24 * time.Hour) }
	fresh := host(t, authority, Server, "s1", clock())
	for what, test := range map[string]struct {
		server *Credentials
		now    func() time.Time
		want   Reason
	}{
		"a client":                       {host(t, authority, Client, "m2", now), nil, WrongRole},
		"one of another cluster":         {host(t, newAuthority(t), Server, "s1", now), nil, OtherCluster},
		"an expired one":                 {host(t, authority, Server, "s1", now), clock, Expired},
		"one that had expired by itself": {host(t, authority, Server, "s1", now.Add(-2*Validity)), nil, Expired},
	} {
		t.Run(what, func(t *testing.T) {
			config := test.server.ServerConfig(stateOf(now, authority).admit(client), allProtocols...)
			for _, protocol := range allProtocols {
				met := connect(t, config, client.ClientConfig(client.Verifier(test.now), protocol))
				requireRefused(t, met.client, test.want)
			}
		})
	}
	met := connect(t, fresh.ServerConfig(stateOf(now, authority).admit(client), allProtocols...), client.ClientConfig(client.Verifier(clock), ProtocolRPC))
	require.NoError(t, met.client)
}

// Hosts' own clocks do not matter, nor those that the authority and the leaves were made by, as long as
// leaves have not ended by the cluster's.
func TestWrongClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, wrong := range []time.Duration{-year, 0, year} {
		authority, err := NewAuthority(now.Add(wrong))
		require.NoError(t, err)
		for _, issuedAt := range []time.Time{now, now.Add(year)} {
			server, client := host(t, authority, Server, "s1", issuedAt), host(t, authority, Client, "m1", issuedAt)
			serverConfig := server.ServerConfig(stateOf(now, authority).admit(client), allProtocols...)
			clientConfig := client.ClientConfig(client.Verifier(func() time.Time { return now }), ProtocolRPC)
			local := func() time.Time { return now.Add(wrong) }
			serverConfig.Time, clientConfig.Time = local, func() time.Time { return now.Add(-wrong) }
			met := connect(t, serverConfig, clientConfig)
			met.requireLetIn(t)

			found, err := discover(t, server, authority.Fingerprint(), now)
			require.NoError(t, err)
			require.Equal(t, authority.Certificate(), found)
		}
	}
}

func TestRenewalTime(t *testing.T) {
	client := host(t, newAuthority(t), Client, "m1", now)
	day := 24 * time.Hour
	require.Equal(t, now, client.Issued())
	require.Equal(t, now.Add(20*day), client.RenewAt())
	require.False(t, client.NeedsRenewal(now.Add(20*day-time.Second)))
	require.True(t, client.NeedsRenewal(now.Add(20*day)))
	require.False(t, client.Expired(now.Add(30*day)))
	require.True(t, client.Expired(now.Add(30*day+time.Second)))
	require.Equal(t, now, client.Verifier(nil).Now())
	require.Equal(t, now, client.Verifier(func() time.Time { return now.Add(-day) }).Now(), "its own certificate says that it is later")
	require.Equal(t, now.Add(day), client.Verifier(func() time.Time { return now.Add(day) }).Now())
}

// A cluster was off for a year: its servers connect, and one that leads gives itself and the others new
// certificates. A mount that knows the time believes them when they have those.
func TestAllServersWereOff(t *testing.T) {
	authority := newAuthority(t)
	later := now.Add(365 * 24 * time.Hour)
	one, two := host(t, authority, Server, "s1", now), host(t, authority, Server, "s2", now)
	client := host(t, authority, Client, "m1", now)
	judge := stateOf(later, authority).admit(one, two, client)
	for _, protocol := range allProtocols {
		connect(t, one.ServerConfig(judge, allProtocols...), two.ClientConfig(judge, protocol)).requireLetIn(t)
		connect(t, one.ServerConfig(judge, allProtocols...), one.ClientConfig(judge, protocol)).requireLetIn(t)
	}
	clientJudge := client.Verifier(func() time.Time { return later })
	met := connect(t, one.ServerConfig(judge, allProtocols...), client.ClientConfig(clientJudge, ProtocolJoin))
	requireRefused(t, met.client, Expired)
	require.NoError(t, one.Renew(IssuedCert{
		Leaf: issue(t, authority, one.Key(), one.Name(), later), Authorities: [][]byte{authority.Certificate().Raw},
	}))
	connect(t, one.ServerConfig(judge, allProtocols...), client.ClientConfig(clientJudge, ProtocolJoin)).requireLetIn(t)
	requireRefused(t, connect(t, one.ServerConfig(judge, allProtocols...), client.ClientConfig(clientJudge, ProtocolRPC)).server, Expired)
}

// Both sides renew again and again while calls go over a connection made before, and while others are made.
func TestRenewalWhileConnectionsAreOpen(t *testing.T) {
	authority := newAuthority(t)
	server, client := host(t, authority, Server, "s1", now), host(t, authority, Client, "m1", now)
	judge := stateOf(now, authority).admit(server, client)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerConfig(judge, allProtocols...))
	require.NoError(t, err)
	defer listener.Close()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	config := client.ClientConfig(client.Verifier(nil), ProtocolRPC)
	echo := func(conn *tls.Conn) {
		t.Helper()
		_, err := conn.Write([]byte("ping"))
		require.NoError(t, err)
		answer := make([]byte, 4)
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, "ping", string(answer))
	}
	dial := func() *tls.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", listener.Addr().String(), config)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		echo(conn)
		return conn
	}
	open := []*tls.Conn{dial()}
	for turn := range 3 {
		at := now.Add(time.Duration(turn+1) * 24 * time.Hour)
		for _, renewing := range []*Credentials{server, client} {
			require.NoError(t, renewing.Renew(IssuedCert{
				Leaf:        issue(t, authority, renewing.Key(), renewing.Name(), at),
				Authorities: [][]byte{authority.Certificate().Raw},
			}))
		}
		open = append(open, dial())
		require.Equal(t, at, issued(open[len(open)-1].ConnectionState().PeerCertificates[0]), "the new leaf is shown")
		for _, conn := range open {
			echo(conn)
		}
	}
	for _, conn := range open {
		conn.Close()
	}
	listener.Close()
}

// What a stranger's bytes come to is an error of the handshake.
func TestNoTLS(t *testing.T) {
	server := host(t, newAuthority(t), Server, "s1", now)
	for _, bytes := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "\x16\x03\x01\xff\xff"} {
		address, served := serveOnce(t, server.ServerConfig(stateOf(now), allProtocols...))
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = conn.Write([]byte(bytes))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.Error(t, (<-served).err)
		conn.Close()
	}
}
