package identity

import (
	"crypto/x509"
	"time"
)

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
