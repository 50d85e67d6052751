package identity

import (
	"crypto/x509"
	"time"
)

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
