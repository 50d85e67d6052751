package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Grant is what a cluster gives to a host that enrols or renews. Certificates are DER.
type Grant struct {
	Leaf        []byte
	Chain       [][]byte // what leads from the leaf to older authorities: cross-signed certificates
	Authorities [][]byte // whom to trust, all that are trusted now
	Servers     []string // addresses; none: those known before stay
}

// Credentials is what a host shows, and whom it trusts. It is safe for concurrent use. A renewal takes effect with the next handshake of each
// config made of it; connections stay.
type Credentials struct {
	dir string // empty: in memory only

	writing sync.Mutex
	current atomic.Pointer[material]
}

// material does not change.
type material struct {
	name        Name
	key         *Key
	leaf        *x509.Certificate
	chain       []*x509.Certificate
	authorities []*x509.Certificate
	servers     []string
	signer      Fingerprint      // of which authority the leaf is; zero if none that is known
	shown       *tls.Certificate // leaf and chain
	withRoots   *tls.Certificate // and the authorities: who comes with a token finds its own among them
}

// NewCredentials are kept in memory only. The leaf must be for the key, and from one of the authorities.
func NewCredentials(key *Key, grant Grant) (*Credentials, error) {
	granted, err := parseGrant(grant)
	if err != nil {
		return nil, err
	}
	if !key.isOf(granted.leaf) {
		return nil, errOtherKey
	}
	c := new(Credentials)
	c.current.Store(granted.with(key))
	return c, nil
}

var errOtherKey = errors.New("the certificate that was issued is for another key")

// parseGrant lacks the key.
func parseGrant(grant Grant) (*material, error) {
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
		return nil, fmt.Errorf("what was issued: %w", err)
	}
	return newMaterial(leaf[0], chain, authorities, grant.Servers)
}

// newMaterial lacks the key. It does not demand that the leaf is from one of the authorities: what is in a directory may be on
// its way from one to the next.
func newMaterial(leaf *x509.Certificate, chain, authorities []*x509.Certificate, servers []string) (*material, error) {
	name, err := NameOf(leaf)
	if err != nil {
		return nil, err
	}
	m := &material{name: name, leaf: leaf, chain: chain, authorities: authorities, servers: slices.Clone(servers)}
	for _, authority := range authorities {
		if leaf.CheckSignatureFrom(authority) == nil {
			m.signer = FingerprintOf(authority)
		}
	}
	return m, nil
}

// with is the same with the key of the leaf.
func (m *material) with(key *Key) *material {
	whole := *m
	whole.key = key
	whole.shown = showing(key, m.leaf, m.chain)
	whole.withRoots = showing(key, m.leaf, m.chain, m.authorities)
	return &whole
}

func showing(key *Key, leaf *x509.Certificate, more ...[]*x509.Certificate) *tls.Certificate {
	shown := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key.private, Leaf: leaf}
	for _, certificate := range slices.Concat(more...) {
		shown.Certificate = append(shown.Certificate, certificate.Raw)
	}
	return shown
}

// Name is who this host is.
func (c *Credentials) Name() Name { return c.current.Load().name }

// Key is what its leaf is for, and what a request for a renewal is signed with.
func (c *Credentials) Key() *Key { return c.current.Load().key }

// Leaf is its certificate.
func (c *Credentials) Leaf() *x509.Certificate { return c.current.Load().leaf }

// Authorities are whom it trusts.
func (c *Credentials) Authorities() []*x509.Certificate { return c.current.Load().authorities }

// Signer is the fingerprint of the authority that signed the leaf; zero if that is none of those trusted.
func (c *Credentials) Signer() Fingerprint { return c.current.Load().signer }

// Servers are the addresses known last.
func (c *Credentials) Servers() []string { return slices.Clone(c.current.Load().servers) }

// Issued is when the leaf was issued, by the cluster's clock: it is not earlier now.
func (c *Credentials) Issued() time.Time { return issued(c.Leaf()) }

func issued(leaf *x509.Certificate) time.Time { return leaf.NotBefore.Add(backdate) }

// NeedsRenewal tells whether two thirds of the leaf's validity are over.
func (c *Credentials) NeedsRenewal(now time.Time) bool {
	return !now.Before(c.RenewAt())
}

// RenewAt is when two thirds of the leaf's validity are over.
func (c *Credentials) RenewAt() time.Time {
	leaf := c.Leaf()
	begin := issued(leaf)
	return begin.Add(leaf.NotAfter.Sub(begin) / 3 * 2)
}

// Expired tells whether the leaf has ended.
func (c *Credentials) Expired(now time.Time) bool { return now.After(c.Leaf().NotAfter) }

// Renew takes up what the cluster granted for the key that the credentials have, and keeps it in their directory first. If that
// fails, what was stays in use. Where another process has enrolled this host with another key meanwhile, that is taken up instead.
func (c *Credentials) Renew(grant Grant) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	was := c.current.Load()
	granted, err := parseGrant(grant)
	if err != nil {
		return err
	}
	if !was.key.isOf(granted.leaf) {
		return errOtherKey
	}
	granted = granted.with(was.key)
	if len(granted.servers) == 0 {
		granted.servers = was.servers
	}
	if err := was.sameHost(granted); err != nil {
		return err
	}
	if c.dir != "" {
		if granted, err = renewDir(c.dir, granted); err != nil {
			return err
		}
	}
	return c.take(granted)
}

// take goes on with other material of the same host.
func (c *Credentials) take(m *material) error {
	if err := c.current.Load().sameHost(m); err != nil {
		return err
	}
	c.current.Store(m)
	return nil
}

func (m *material) sameHost(next *material) error {
	if next.name != m.name {
		return fmt.Errorf("the certificate is for %v, and this was started as %v", next.name, m.name)
	}
	return nil
}

// SetServers keeps other addresses.
func (c *Credentials) SetServers(servers []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	next := *c.current.Load()
	if slices.Equal(next.servers, servers) {
		return nil
	}
	next.servers = slices.Clone(servers)
	if c.dir != "" {
		if err := writeServers(c.dir, servers); err != nil {
			return err
		}
	}
	c.current.Store(&next)
	return nil
}

// Reload takes up what is in the directory, where another process of this host may have renewed, or enrolled it with another key. It is
// an error if that is for another name.
func (c *Credentials) Reload() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.dir == "" {
		return nil
	}
	loaded, err := loadDir(c.dir)
	if err != nil {
		return err
	}
	return c.take(loaded)
}
