package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// verifyPeer is the one place that says who is let in. With the usage of a server it must be one, as for [ProtocolRaft].
func verifyPeer(judge Judge, state *tls.ConnectionState, usage x509.ExtKeyUsage) (Name, error) {
	if len(state.PeerCertificates) == 0 {
		return Name{}, &Refused{Reason: NoCertificate}
	}
	leaf, extra := state.PeerCertificates[0], state.PeerCertificates[1:]
	name, err := verifyChain(judge.Authorities(), leaf, extra)
	if err != nil {
		return Name{}, err
	}
	if (usage == x509.ExtKeyUsageServerAuth || state.NegotiatedProtocol == ProtocolRaft) && name.Role != Server {
		return Name{}, &Refused{Reason: WrongRole, Name: name}
	}
	if judge.Now().After(leaf.NotAfter) {
		return Name{}, &Refused{Reason: Expired, Name: name, NotAfter: leaf.NotAfter}
	}
	switch judge.Standing(name, KeyHashOf(leaf)) {
	case Admitted:
		return name, nil
	case Revoked:
		return Name{}, &Refused{Reason: KeyRevoked, Name: name}
	default:
		if state.NegotiatedProtocol == ProtocolRaft {
			return name, nil
		}
		return Name{}, &Refused{Reason: NotAdmitted, Name: name}
	}
}

// maxExtra is how many certificates besides the leaf are looked at. With the kinds of keys it bounds what a stranger's handshake costs.
const maxExtra = 16

// verifyChain says whose leaf it is, if an authority signed it, itself or through one that it cross-signed.
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
	if err == nil && leaf.IsCA {
		err = errors.New("it is an authority's")
	}
	if err != nil {
		return Name{}, &Refused{Reason: BadCertificate, Err: err}
	}
	return name, nil
}

// claimedAuthority is what a leaf says of who signed it: the fingerprint, as Issue wrote it.
func claimedAuthority(leaf *x509.Certificate) string {
	said := strings.Join(leaf.Subject.OrganizationalUnit, ",")
	return said[:min(len(said), 64)]
}
