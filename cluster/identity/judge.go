package identity

import (
	"crypto/x509"
	"time"
)

// Standing is what a cluster's state says of a host's key.
type Standing uint8

const (
	// Unknown is said of a host that the state does not have with that role and key.
	Unknown Standing = iota
	// Admitted is said of one that it has.
	Admitted
	// Revoked is said of a key that is never let in again.
	Revoked
	// NotAsked is said where there is no state to ask: the certificate alone counts.
	NotAsked
	// Unproven is said of a server that a host without the cluster's state has not heard of as a member. Its certificate has to be of the
	// newest authority, and the host has it prove that it is a server (see [Vetting]).
	Unproven
)

// Judge is what one side of a connection knows of the cluster now. It is asked in handshakes, many at once, and must not wait for others.
type Judge interface {
	// Authorities are whom to trust. A server whose state has none yet says those that came with its own certificate.
	Authorities() []*x509.Certificate
	// Now is the time of the cluster, as far as it is known.
	Now() time.Time
	// Standing is that of a host whose certificate is from one of the authorities; NotAsked while there is no state.
	Standing(name Name, key KeyHash) Standing
}
