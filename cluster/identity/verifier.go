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
