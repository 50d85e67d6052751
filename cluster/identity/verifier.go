package identity

import (
	"crypto/x509"
	"time"
)

// Status is the status of a host's key in the cluster's state.
type Status uint8

const (
	// Unknown means: the state has no host with this role and key.
	Unknown Status = iota
	// Admitted means: the state has the host.
	Admitted
	// Revoked means: the key is never accepted again.
	Revoked
	// CertificateOnly means: there is no state, and the certificate alone counts.
	CertificateOnly
	// Unproven means: a server not in the roster of a host without the state. Its certificate has to be
	// of the newest CA, and it has to prove its membership (see [Vetting]).
	Unproven
)

// Verifier is the knowledge of the cluster on one side of a connection. Handshakes call it concurrently,
// so it must not wait.
type Verifier interface {
	// Authorities returns the trusted CAs. A server without a state returns those that came with its own
	// certificate.
	Authorities() []*x509.Certificate
	// Now returns cluster time, as far as known.
	Now() time.Time
	// Status returns the status of a host with a certificate from one of the CAs; CertificateOnly without a
	// state.
	Status(name Name, key KeyHash) Status
}

// Verifier returns the verifier of a host without the cluster's state, based on its [Roster]. Its time is
// at least that of the own certificate's issue; now, which may be nil, may return a later one.
func (c *Credentials) Verifier(now func() time.Time) Verifier {
	return &clientVerifier{credentials: c, now: now}
}

type clientVerifier struct {
	credentials *Credentials
	now         func() time.Time
}

func (v *clientVerifier) Authorities() []*x509.Certificate { return v.credentials.Authorities() }

func (v *clientVerifier) Now() time.Time {
	floor := v.credentials.Issued()
	if v.now == nil {
		return floor
	}
	return laterOf(floor, v.now())
}

func (v *clientVerifier) Status(name Name, key KeyHash) Status {
	standing, found := v.credentials.current.Load().statuses[key]
	switch {
	case found:
		return standing
	case name.Role == Server:
		return Unproven
	}
	return CertificateOnly
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
