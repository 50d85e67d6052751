package identity

import (
	"fmt"
	"time"
)

// Reason is why a peer was not let in.
type Reason uint8

const (
	// NoCertificate is for who shows none.
	NoCertificate Reason = iota + 1
	// BadCertificate is for one that no authority of a cluster makes.
	BadCertificate
	// OtherCluster is for one whose authority is not trusted.
	OtherCluster
	// Expired is for one that has ended.
	Expired
	// KeyRevoked is for a host that was revoked.
	KeyRevoked
	// NotAdmitted is for a host that the state does not have, or has with another key.
	NotAdmitted
	// WrongRole is for a client where a server is needed.
	WrongRole
)

// String is a word for figures.
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

// Refused says why a peer was not let in. What of it the peer said itself (its name, its authority) may be a lie, unless the reason is Expired,
// KeyRevoked, NotAdmitted or WrongRole: then an authority of the cluster has signed it. That the peer has the key as well is only
// known when the handshake is done.
type Refused struct {
	Reason    Reason
	Name      Name      // zero if not known
	NotAfter  time.Time // when the certificate ended: Expired
	Authority string    // what the certificate says of its authority, at most 64 bytes: OtherCluster
	Err       error     // what was found: BadCertificate
}

// Error says what to do.
func (e *Refused) Error() string {
	who := "the other side"
	if e.Name != (Name{}) {
		who = fmt.Sprintf("%v %s", e.Name.Role, e.Name.Host)
	}
	switch e.Reason {
	case NoCertificate:
		return who + " shows no certificate: only hosts of this cluster are let in (lockfs up TOKEN makes one of it)"
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

// Unwrap is what was found, if there is more.
func (e *Refused) Unwrap() error { return e.Err }
