package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
)

// bundle is immutable.
type bundle struct {
	name        Name
	key         *Key
	leaf        *x509.Certificate
	chain       []*x509.Certificate
	authorities []*x509.Certificate
	servers     []string
	roster      *Roster // never nil
	statuses    map[KeyHash]Status
	signer      Fingerprint      // CA of the leaf; zero: not among the known ones
	presented   *tls.Certificate // leaf and chain
	withRoots   *tls.Certificate // the same and the CAs: a token names one of these
}

// parseIssuedCert returns a bundle without the key.
func parseIssuedCert(grant IssuedCert) (*bundle, error) {
	leaf, err := parseCertificates("the certificate that was issued", [][]byte{grant.Leaf})
	if err != nil {
		return nil, err
	}
	chain, err := parseCertificates("the chain of the certificate that was issued", grant.Chain)
	if err != nil {
		return nil, err
	}
	authorities, err := parseCertificates("an authority", grant.Authorities)
	if err != nil {
		return nil, err
	}
	if _, err := verifyChain(authorities, leaf[0], chain); err != nil {
		return nil, fmt.Errorf("issued certificate: %w", err)
	}
	m, err := newBundle(leaf[0], chain, authorities, grant.Servers)
	if err == nil && grant.Roster != nil {
		m.roster = grant.Roster
	}
	return m, err
}

// newBundle returns a bundle without the key. The leaf may be from another CA: a directory may be on its
// way from one CA to the next.
func newBundle(leaf *x509.Certificate, chain, authorities []*x509.Certificate, servers []string) (*bundle, error) {
	name, err := NameOf(leaf)
	if err != nil {
		return nil, err
	}
	m := &bundle{name: name, leaf: leaf, chain: chain, authorities: authorities, servers: slices.Clone(servers), roster: new(Roster)}
	for _, authority := range authorities {
		if leaf.CheckSignatureFrom(authority) == nil {
			m.signer = FingerprintOf(authority)
		}
	}
	return m, nil
}

// with returns the bundle with the leaf's key.
func (b *bundle) with(key *Key) *bundle {
	whole := *b
	whole.key, whole.statuses = key, b.roster.statuses()
	whole.presented = certificateOf(key, b.leaf, b.chain)
	whole.withRoots = certificateOf(key, b.leaf, b.chain, b.authorities)
	return &whole
}

func (b *bundle) sameHost(next *bundle) error {
	if next.name != b.name {
		return fmt.Errorf("the certificate is for %v, and this was started as %v", next.name, b.name)
	}
	return nil
}

// IssuedCert is the cluster's answer to an enrolment or renewal. Certificates are DER.
type IssuedCert struct {
	Leaf        []byte
	Chain       [][]byte // cross-signed certificates, from the leaf to older CAs
	Authorities [][]byte // all trusted CAs
	Servers     []string // addresses; none: unchanged
	Roster      *Roster  // nil: unchanged
}

func certificateOf(key *Key, leaf *x509.Certificate, more ...[]*x509.Certificate) *tls.Certificate {
	shown := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key.private, Leaf: leaf}
	for _, certificate := range slices.Concat(more...) {
		shown.Certificate = append(shown.Certificate, certificate.Raw)
	}
	return shown
}
