package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// oneCertificate secures a cluster whose hosts all have the same certificate, which is its own authority's.
func oneCertificate(t testing.TB) *rpc.Security {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"server.lockfs"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	config := func(protocols ...string) *tls.Config {
		return &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: protocols, MinVersion: tls.VersionTLS13,
			RootCAs: pool, ServerName: "server.lockfs", ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	return &rpc.Security{
		Server: config(rpc.ProtocolRaft, rpc.ProtocolRPC),
		Client: func(protocol string) *tls.Config { return config(protocol) },
		Caller: func(*tls.ConnectionState) (rpc.Caller, error) {
			return rpc.Caller{Role: rpc.RoleServer, Host: "all"}, nil
		},
	}
}

// TestAClusterOverTLS elects, replicates, and goes on without its leader; who comes without TLS is told so.
func TestAClusterOverTLS(t *testing.T) {
	security := oneCertificate(t)
	var nodes []*Node
	var servers []string
	for i, name := range []string{"n0", "n1", "n2"} {
		cfg := testConfig(t, name, servers[:min(i, 1)]...)
		cfg.Security = security
		nodes = append(nodes, startNode(t, cfg))
		servers = append(servers, cfg.Address)
	}
	require.False(t, ask(t, nodes[0], rpc.Node.Status, &clusterpb.StatusRequest{}).GetInsecure())
	client, err := session.Dial(t.Context(), servers, session.Config{Host: "guest", Security: security, OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(t.Context()) }()
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))

	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = session.Dial(soon, servers[:1], session.Config{Host: "plain", OpTimeout: time.Second, Logger: quietLogger()})
	require.ErrorContains(t, err, rpc.NeedsTLS.Error())

	leader := leaderOf(t, nodes)
	require.NoError(t, leader.Close())
	require.Equal(t, storepb.Code_OK, create(t, client, "after"))
	require.Equal(t, storepb.Code_EXISTS, create(t, client, "before"))
}
