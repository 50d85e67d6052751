package identity

import (
	"crypto/x509"
	"time"
)

// Status is what a cluster's state says of a host's key.
type Status uint8

const (
	// Unknown is said of a host that the state does not have with that role and key.
	Unknown Status = iota
	// Admitted is said of one that it has.
	Admitted
	// Revoked is said of a key that is never let in again.
	Revoked
	// CertificateOnly is said where there is no state to ask: the certificate alone counts.
	CertificateOnly
	// Unproven is said of a server that a host without the cluster's state has not heard of as a member. Its certificate has to be of the
	// newest authority, and the host has it prove that it is a server (see [Vetting]).
	Unproven
)

// Verifier is what one side of a connection knows of the cluster now. It is asked in handshakes, many at once, and must not wait for others.
type Verifier interface {
	// Authorities are whom to trust. A server whose state has none yet says those that came with its own certificate.
	Authorities() []*x509.Certificate
	// Now is the time of the cluster, as far as it is known.
	Now() time.Time
	// Status is that of a host whose certificate is from one of the authorities; CertificateOnly while there is no state.
	Status(name Name, key KeyHash) Status
}
