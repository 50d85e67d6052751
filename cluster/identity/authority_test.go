package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

func TestNames(t *testing.T) {
	authority := newAuthority(t)
	for _, want := range []Name{
		{Server, "a"}, {Server, "Node-1.example.org"}, {Client, "x_y"}, {Client, "server.lockfs"}, {Server, "a.client.lockfs"},
		{Client, "server"}, {Client, "a..b"},
	} {
		leaf := parsed(t, issue(t, authority, newKey(t), want, now))
		got, err := NameOf(leaf)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want.Role == Server, leaf.VerifyHostname(ServerName) == nil, "only servers are %s", ServerName)
	}
	for _, bad := range []string{"", "-a", "a-", "a b", "a/b", "*", "a\n", "ä", string(bytes.Repeat([]byte("a"), 64))} {
		_, err := ParseName(Client, bad)
		require.Error(t, err, bad)
	}
	_, err := ParseName(0, "a")
	require.Error(t, err)

	for _, bad := range [][]string{
		nil, {"a.example.org"}, {ServerName}, {"a.server.lockfs"}, {ServerName, "a.client.lockfs"}, {"a.client.lockfs", "b.client.lockfs"},
		{ServerName, "a.server.lockfs", "b.client.lockfs"}, {ServerName, "a.server.lockfs", "b.server.lockfs"}, {"*.client.lockfs"}, {".client.lockfs"},
	} {
		_, err := NameOf(&x509.Certificate{DNSNames: bad})
		require.Error(t, err, bad)
	}
	_, err = NameOf(&x509.Certificate{DNSNames: []string{"a.client.lockfs"}, EmailAddresses: []string{"a@b"}})
	require.Error(t, err, "for other things too")
}

func TestRolesAreWords(t *testing.T) {
	for _, role := range []Role{Server, Client} {
		got, err := ParseRole(role.String())
		require.NoError(t, err)
		require.Equal(t, role, got)
	}
	_, err := ParseRole("admin")
	require.Error(t, err)
}

// TestAClusterBeginsAtAnyTime has clocks that were never set, and some of later.
func TestAClusterBeginsAtAnyTime(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 0), time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)} {
		authority, err := NewAuthority(at)
		require.NoError(t, err)
		key := newKey(t)
		credentials, err := NewCredentials(key, IssuedCert{
			Leaf: issue(t, authority, key, Name{Server, "s1"}, at), Authorities: [][]byte{authority.Certificate().Raw},
		})
		require.NoError(t, err, at)
		require.True(t, credentials.Issued().Equal(at))
		made := NewToken(Client, []string{"s1:1"}, authority.Fingerprint(), at)
		text, err := made.Text()
		require.NoError(t, err)
		token, err := ParseToken(text)
		require.NoError(t, err, at)
		require.Equal(t, made, token)
	}
}

func TestIssuedLeaf(t *testing.T) {
	authority, key := newAuthority(t), newKey(t)
	leaf := parsed(t, issue(t, authority, key, Name{Client, "m1"}, now))
	require.Equal(t, now.Add(-time.Hour), leaf.NotBefore)
	require.Equal(t, now.Add(30*24*time.Hour), leaf.NotAfter)
	require.Equal(t, now, issued(leaf))
	require.Equal(t, key.Hash(), KeyHashOf(leaf))
	require.False(t, leaf.IsCA)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, leaf.ExtKeyUsage)
	require.NoError(t, leaf.CheckSignatureFrom(authority.Certificate()))
	server := parsed(t, issue(t, authority, key, Name{Server, "s1"}, now))
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, server.ExtKeyUsage)

	other := parsed(t, issue(t, authority, key, Name{Client, "m1"}, now))
	require.NotEqual(t, leaf.SerialNumber, other.SerialNumber)
}

func TestRequestsThatAreRefused(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for _, key := range []any{p384, weak, edwards} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"a.client.lockfs"}}, key)
		require.NoError(t, err)
		_, err = ParseRequest(der)
		require.ErrorIs(t, err, errNotP256, "%T", key)
	}

	der, err := newKey(t).Request(Name{Client, "a"})
	require.NoError(t, err)
	_, err = ParseRequest(der)
	require.NoError(t, err)
	_, err = ParseRequest(append(bytes.Clone(der), 0))
	require.Error(t, err, "something after it")
	for at := range der {
		damaged := bytes.Clone(der)
		damaged[at] ^= 1
		_, err := ParseRequest(damaged)
		require.Error(t, err, "byte %d of %d", at, len(der))
	}

	// Somebody asks for another name with a request that he saw.
	request, err := x509.ParseCertificateRequest(der)
	require.NoError(t, err)
	require.Equal(t, []string{"a.client.lockfs"}, request.DNSNames)
	_, err = ParseRequest(bytes.Replace(der, []byte("a.client"), []byte("b.client"), 1))
	require.ErrorContains(t, err, "not signed by its key")
}

func TestSecretsAreNotShown(t *testing.T) {
	authority, key, seal := newAuthority(t), newKey(t), NewSealKey()
	token := NewToken(Client, []string{"a:1"}, authority.Fingerprint(), now)
	require.Equal(t, "(seal key)", fmt.Sprint(seal))
	require.Equal(t, "(seal key)", fmt.Sprintf("%#v", seal))
	require.Equal(t, "(secret) (secret)", fmt.Sprintf("%v %#v", token.Secret, token.Secret))
	require.Equal(t, fmt.Sprintf("token %v for a client", token.ID), fmt.Sprintf("%+v", token))
	require.Equal(t, "key "+key.Hash().String()[:16], fmt.Sprintf("%+v", key))
	require.Equal(t, "authority "+authority.Fingerprint().String()[:16], fmt.Sprintf("%+v", authority))
}

func TestCertificatesAsPEM(t *testing.T) {
	a, b := newAuthority(t).Certificate(), newAuthority(t).Certificate()
	content := EncodeCertificates(a, b)
	got, err := DecodeCertificates(content)
	require.NoError(t, err)
	require.Equal(t, []*x509.Certificate{a, b}, got)
	key, err := newKey(t).pem()
	require.NoError(t, err)
	for _, bad := range [][]byte{nil, []byte("\n"), content[:len(content)-40], append(bytes.Clone(content), key...), []byte("none")} {
		_, err := DecodeCertificates(bad)
		require.Error(t, err)
	}
}

func TestOnlyAuthoritiesAreCrossSigned(t *testing.T) {
	authority := newAuthority(t)
	_, err := authority.CrossSign(parsed(t, issue(t, authority, newKey(t), Name{Server, "a"}, now)))
	require.Error(t, err)
}

// FuzzParseRequest: what is taken for a request is for a name that a host may have, and can be issued.
func FuzzParseRequest(f *testing.F) {
	authority := newAuthority(f)
	for _, name := range []Name{{Server, "a"}, {Client, "b-1.example.org"}} {
		der, err := newKey(f).Request(name)
		require.NoError(f, err)
		f.Add(der)
		f.Add(der[:len(der)-1])
	}
	f.Add([]byte(nil))
	fuzzing.Run(f, func(t *testing.T, der []byte) {
		request, err := ParseRequest(der)
		if err != nil {
			return
		}
		require.True(t, ValidHost(request.Name.Host))
		issued, err := authority.Issue(request, now, Validity)
		require.NoError(t, err)
		leaf := parsed(t, issued)
		require.Equal(t, request.KeyHash, KeyHashOf(leaf))
		name, err := verifyChain([]*x509.Certificate{authority.Certificate()}, leaf, nil)
		require.NoError(t, err)
		require.Equal(t, request.Name, name)
	})
}
