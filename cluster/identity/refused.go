package identity

import (
	"fmt"
	"time"
)

// Reason is the reason for refusing a peer.
type Reason uint8

const (
	// NoCertificate means: the peer sent none.
	NoCertificate Reason = iota + 1
	// BadCertificate means: no CA of a cluster issues such a certificate.
	BadCertificate
	// OtherCluster means: its CA is not trusted.
	OtherCluster
	// Expired means: its validity has ended.
	Expired
	// KeyRevoked means: the host was revoked.
	KeyRevoked
	// NotAdmitted means: the state lacks the host, or has another key.
	NotAdmitted
	// WrongRole means: a client instead of a server.
	WrongRole
)

// String returns a label for metrics.
func (r Reason) String() string {
	if word, known := reasonWords[r]; known {
		return word
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}

var reasonWords = map[Reason]string{
	NoCertificate:  "no_certificate",
	BadCertificate: "bad_certificate",
	OtherCluster:   "other_cluster",
	Expired:        "expired",
	KeyRevoked:     "revoked",
	NotAdmitted:    "not_admitted",
	WrongRole:      "wrong_role",
}

// Refused describes a refused peer. Name and authority are the peer's own claims, possibly false, unless the
// reason is Expired, KeyRevoked, NotAdmitted or WrongRole: then a CA of the cluster has signed them. Only a
// finished handshake proves the peer's possession of the key.
type Refused struct {
	Reason    Reason
	Name      Name      // zero: unknown
	NotAfter  time.Time // end of the certificate: Expired
	Authority string    // of the certificate, at most 64 bytes: OtherCluster
	Err       error     // the fault: BadCertificate
}

// Error returns the problem and the remedy.
func (e *Refused) Error() string {
	who := "the other side"
	if e.Name != (Name{}) {
		who = fmt.Sprintf("%v %s", e.Name.Role, e.Name.Host)
	}
	switch e.Reason {
	case NoCertificate:
		return who + " has no certificate of this cluster: join it with lockfs up TOKEN"
	case OtherCluster:
		return fmt.Sprintf("the certificate of %s is of another cluster (authority %q): it needs a token of this one (lockfs up TOKEN)", who, e.Authority)
	case Expired:
		return fmt.Sprintf("the certificate of %s expired on %s: run lockfs up there", who, e.NotAfter.UTC().Format(time.DateOnly))
	case KeyRevoked:
		return who + " was revoked: to let it in again, make a token (lockfs token create) and run lockfs up TOKEN there"
	case NotAdmitted:
		return who + " is not known with this key: it enrolled again with another one, or was forgotten (lockfs up TOKEN lets it in)"
	case WrongRole:
		return who + " is no server of this cluster"
	default:
		return fmt.Sprintf("the certificate of %s is none of a cluster: %v", who, e.Err)
	}
}

// Unwrap returns the fault, if any.
func (e *Refused) Unwrap() error { return e.Err }
