package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A visitor speaks to servers from a host, and shows what certificate he has. He does not care who they are.
type visitor struct {
	host        *hosts.Host
	certificate *tls.Certificate // nil: he has none
}

// asIn has the certificate and the key of an identity directory.
func asIn(t testing.TB, host *hosts.Host, dir string) visitor {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "host.pem"), filepath.Join(dir, "host.key"))
	require.NoError(t, err)
	return visitor{host, &pair}
}

// connect makes a connection for a protocol. With TLS 1.3 a client learns that he is refused when he reads.
func (v visitor) connect(address, protocol string) (*tls.Conn, error) {
	plain, err := v.host.Dial(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	if protocol != "" {
		config.NextProtos = []string{protocol}
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if v.certificate == nil {
			return new(tls.Certificate), nil
		}
		return v.certificate, nil // whoever the server asks for
	}
	conn := tls.Client(plain, config)
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if err := conn.Handshake(); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, nil
}

// hears says something to a port and answers all that comes back until the server ends the connection, and how it does.
func (v visitor) hears(address, protocol string, said []byte) ([]byte, error) {
	conn, err := v.connect(address, protocol)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_, _ = conn.Write(said) // whether it was taken shows in what comes
	heard, err := io.ReadAll(conn)
	return heard, err
}

// call does one call of the cluster's protocol.
func (v visitor) call(address, protocol string, method byte, m message) (answer, error) {
	conn, err := v.connect(address, protocol)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	if _, err := conn.Write(append([]byte(rpcPreface), frame(method, m)...)); err != nil {
		return answer{}, err
	}
	return readAnswer(conn)
}

// ask calls one server after the other until it is answered by the one that leads. In all replies the outcome is the first field.
func (v visitor) ask(t testing.TB, addresses []string, method byte, m message) answer {
	t.Helper()
	return v.askFor(t, protocolRPC, addresses, method, m)
}

func (v visitor) askFor(t testing.TB, protocol string, addresses []string, method byte, m message) (last answer) {
	t.Helper()
	hosts.Eventually(t, "an answer of the leader", func() (string, bool) {
		for _, address := range addresses {
			var err error
			if last, err = v.call(address, protocol, method, m); err != nil {
				return err.Error(), false
			}
			if last.kind != kindAnswered || last.message.numberOf(1) == 0 {
				return "", true
			}
		}
		return last.String(), false
	})
	return last
}

// An authority is one that nobody asked for.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lockfs"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

// issue makes a certificate for some names, with further certificates after it.
func (a *authority) issue(t testing.TB, names []string, chain ...[]byte) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: append([][]byte{der}, chain...), PrivateKey: key}
}

// request asks for a certificate: PKCS #10.
func request(t testing.TB, key *ecdsa.PrivateKey, names ...string) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, key)
	require.NoError(t, err)
	return der
}

// plainly says something without TLS and answers what comes back until the server ends the connection.
func plainly(t testing.TB, host *hosts.Host, address string, said []byte) []byte {
	t.Helper()
	conn, err := host.Dial(address)
	require.NoError(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write(said)
	heard, _ := io.ReadAll(conn)
	return heard
}
