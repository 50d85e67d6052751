package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"
)

// A host may connect to a server before the server has the entry of its admission. If a CA has signed its
// certificate, the server waits this long, with these pauses.
const (
	learnTime  = 300 * time.Millisecond
	learnPause = 20 * time.Millisecond
)

// need is the required role of the peer.
type need uint8

const (
	anyHost      need = iota
	anyServer         // on an accepted connection
	serverDialed      // it can be asked for a proof
)

// verifyPeer is the only place that decides about peers.
func verifyPeer(judge Verifier, state *tls.ConnectionState, needed need) error {
	if len(state.PeerCertificates) == 0 {
		return &Refused{Reason: NoCertificate}
	}
	leaf, extra := state.PeerCertificates[0], state.PeerCertificates[1:]
	name, err := verifyChain(judge.Authorities(), leaf, extra)
	if err != nil {
		return err
	}
	if needed != anyHost && name.Role != Server {
		return &Refused{Reason: WrongRole, Name: name}
	}
	standing := judge.Status(name, KeyHashOf(leaf))
	for waited := time.Duration(0); standing == Unknown && state.NegotiatedProtocol != ProtocolRaft && waited < learnTime; waited += learnPause {
		time.Sleep(learnPause)
		standing = judge.Status(name, KeyHashOf(leaf))
	}
	switch standing {
	case Revoked:
		return &Refused{Reason: KeyRevoked, Name: name}
	case Unknown, Unproven:
		// A host admitted since has a certificate of the newest CA known here, or of a later one. A
		// certificate of an earlier CA may have been made by a removed server, which has this CA's key on its
		// disk.
		if _, err := verifyChain(judge.Authorities()[:1], leaf, extra); err != nil {
			return err
		}
	}
	// Servers which were all off for longer than the validity of their certificates must find each other to
	// renew them. An admitted host can renew its certificate with its key alone, so an end would exclude no
	// host.
	if standing == Admitted && name.Role == Server {
		return nil
	}
	if judge.Now().After(leaf.NotAfter) {
		return &Refused{Reason: Expired, Name: name, NotAfter: leaf.NotAfter}
	}
	if standing == Unknown && state.NegotiatedProtocol != ProtocolRaft || standing == Unproven && needed != serverDialed {
		return &Refused{Reason: NotAdmitted, Name: name}
	}
	return nil
}

// maxExtra limits the certificates besides the leaf. With the kinds of keys it limits the cost of a
// stranger's handshake.
const maxExtra = 16

// verifyChain returns the name in a leaf, if a CA has signed it, directly or through a cross-signed one.
func verifyChain(authorities []*x509.Certificate, leaf *x509.Certificate, extra []*x509.Certificate) (Name, error) {
	options := x509.VerifyOptions{
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		CurrentTime:   leaf.NotBefore,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, authority := range authorities {
		options.Roots.AddCert(authority)
	}
	for _, certificate := range extra[:min(len(extra), maxExtra)] {
		if certificate.IsCA && checkPublic(certificate.PublicKey) == nil {
			options.Intermediates.AddCert(certificate)
		}
	}
	if _, err := leaf.Verify(options); err != nil {
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			return Name{}, &Refused{Reason: OtherCluster, Authority: claimedAuthority(leaf)}
		}
		return Name{}, &Refused{Reason: BadCertificate, Err: err}
	}
	name, err := NameOf(leaf)
	if err == nil {
		err = checkPublic(leaf.PublicKey)
	}
	if err != nil {
		return Name{}, &Refused{Reason: BadCertificate, Err: err}
	}
	return name, nil
}

// claimedAuthority returns the CA's fingerprint in a leaf, as written by Issue.
func claimedAuthority(leaf *x509.Certificate) string {
	said := strings.Join(leaf.Subject.OrganizationalUnit, ",")
	return said[:min(len(said), 64)]
}
