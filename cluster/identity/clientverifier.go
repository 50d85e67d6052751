package identity

import (
	"crypto/x509"
	"time"
)

// Verifier is that of a host without the cluster's state. It goes by the [Roster] that the host was told. The time is at least when its own
// certificate was issued; now may say more, and may be nil.
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
