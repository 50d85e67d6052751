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

// Judge is that of a host without the cluster's state. It goes by the [Roster] that the host was told. The time is at least when its own
// certificate was issued; now may say more, and may be nil.
func (c *Credentials) Judge(now func() time.Time) Judge {
	return &clientJudge{credentials: c, now: now}
}

type clientJudge struct {
	credentials *Credentials
	now         func() time.Time
}

func (j *clientJudge) Authorities() []*x509.Certificate { return j.credentials.Authorities() }

func (j *clientJudge) Now() time.Time {
	floor := j.credentials.Issued()
	if j.now == nil {
		return floor
	}
	return later(floor, j.now())
}

func (j *clientJudge) Standing(name Name, key KeyHash) Standing {
	standing, found := j.credentials.current.Load().judged[key]
	switch {
	case found:
		return standing
	case name.Role == Server:
		return Unproven
	}
	return NotAsked
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
