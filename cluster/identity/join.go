package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// Discover fetches the CA's certificate with a fingerprint from a server, and verifies the CA's signature of
// the server's leaf. It sends no secret and trusts nothing else: other requests use connections of
// [JoinConfig]. It refuses a server with a certificate expired at floor, the time of the token's creation.
//
// The error is a [*Refused] if the server is not one of that cluster: it is another one, or an attacker in
// between.
func Discover(ctx context.Context, address string, fingerprint Fingerprint, floor time.Time) (*x509.Certificate, error) {
	var authority *x509.Certificate
	config := baseConfig(ProtocolJoin)
	config.ServerName = ServerName
	config.InsecureSkipVerify = true // the fingerprint decides about trust
	config.VerifyConnection = func(state tls.ConnectionState) error {
		for _, certificate := range state.PeerCertificates {
			if FingerprintOf(certificate) == fingerprint {
				authority = certificate
			}
		}
		if authority == nil {
			return otherAuthority(&state)
		}
		return verifyPeer(&joinVerifier{authority: authority, floor: floor}, &state, serverDialed)
	}
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, explainDial(address, err)
	}
	return authority, conn.Close()
}

func otherAuthority(state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return &Refused{Reason: NoCertificate}
	}
	return &Refused{Reason: OtherCluster, Authority: claimedAuthority(state.PeerCertificates[0])}
}

func explainDial(address string, err error) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return fmt.Errorf("%s does not speak TLS: does the server there run with --insecure? (%w)", address, err)
	}
	var refused *Refused
	if errors.As(err, &refused) && refused.Reason == OtherCluster {
		return fmt.Errorf("%s belongs to another cluster than the token, or the connection is intercepted: %w", address, err)
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "dial" {
		return err // it has the address
	}
	return fmt.Errorf("%s: %w", address, err)
}

// JoinConfig is for connections of a host without a certificate to servers verified by the CA of [Discover].
// floor is as there.
func JoinConfig(authority *x509.Certificate, floor time.Time) *tls.Config {
	return clientConfig(&joinVerifier{authority: authority, floor: floor}, ProtocolJoin)
}

// joinVerifier verifies with the data of a token.
type joinVerifier struct {
	authority *x509.Certificate
	floor     time.Time
}

func (v *joinVerifier) Authorities() []*x509.Certificate { return []*x509.Certificate{v.authority} }

func (v *joinVerifier) Now() time.Time { return v.floor }

func (*joinVerifier) Status(Name, KeyHash) Status { return CertificateOnly }
