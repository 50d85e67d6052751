package rpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testAuthority signs certificates.
type testAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newTestAuthority(t testing.TB) *testAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &testAuthority{certificate, key}
}

// security is that of a host; one without a name has no certificate.
func (a *testAuthority) security(t testing.TB, role Role, host string) *Security {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	var own []tls.Certificate
	if host != "" {
		own = append(own, a.issue(t, role, host))
	}
	forCallers := &tls.Config{
		Certificates: own, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{ProtocolRaft, ProtocolRPC}, MinVersion: tls.VersionTLS13,
	}
	forJoiners := &tls.Config{Certificates: own, NextProtos: []string{ProtocolJoin}, MinVersion: tls.VersionTLS13}
	return &Security{
		Server: &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == ProtocolJoin {
				return forJoiners, nil
			}
			return forCallers, nil
		}},
		Client: func(protocol string) *tls.Config {
			return &tls.Config{
				Certificates: own, RootCAs: pool, ServerName: "server.lockfs", NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13,
			}
		},
		Caller: func(state *tls.ConnectionState) (Caller, error) {
			name := state.PeerCertificates[0].DNSNames[0]
			if host, found := strings.CutSuffix(name, ".client.lockfs"); found {
				return Caller{Role: RoleClient, Host: host}, nil
			}
			if host, found := strings.CutSuffix(name, ".server.lockfs"); found {
				return Caller{Role: RoleServer, Host: host}, nil
			}
			return Caller{}, errors.New("who is that?")
		},
	}
}

func (a *testAuthority) issue(t testing.TB, role Role, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	names := []string{host + "." + role.String() + ".lockfs"}
	if role == RoleServer {
		names = append(names, "server.lockfs")
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
