package identity

import (
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Credentials has a host's certificate and its trusted CAs. It is safe for concurrent use. A renewal
// takes effect with the next handshake of each config made from it; connections stay.
type Credentials struct {
	dir string // empty: in memory only

	writing sync.Mutex
	current atomic.Pointer[bundle]
}

// NewCredentials keeps the credentials in memory only. The leaf must be for the key, and from one of the
// CAs.
func NewCredentials(key *Key, grant IssuedCert) (*Credentials, error) {
	granted, err := parseIssuedCert(grant)
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

// Name returns the name of this host.
func (c *Credentials) Name() Name { return c.current.Load().name }

// Key returns the key of the leaf, which also signs requests for renewals.
func (c *Credentials) Key() *Key { return c.current.Load().key }

// Leaf returns the host's certificate.
func (c *Credentials) Leaf() *x509.Certificate { return c.current.Load().leaf }

// Authorities returns the trusted CAs.
func (c *Credentials) Authorities() []*x509.Certificate { return c.current.Load().authorities }

// Signer returns the fingerprint of the leaf's CA; zero: it is not trusted.
func (c *Credentials) Signer() Fingerprint { return c.current.Load().signer }

// Servers returns the last known addresses.
func (c *Credentials) Servers() []string { return slices.Clone(c.current.Load().servers) }

// Issued returns when the leaf was issued, by the cluster's clock: now is later.
func (c *Credentials) Issued() time.Time { return issued(c.Leaf()) }

func issued(leaf *x509.Certificate) time.Time { return leaf.NotBefore.Add(backdate) }

// NeedsRenewal reports whether two thirds of the leaf's validity are over.
func (c *Credentials) NeedsRenewal(now time.Time) bool {
	return !now.Before(c.RenewAt())
}

// RenewAt returns the time at two thirds of the leaf's validity.
func (c *Credentials) RenewAt() time.Time {
	leaf := c.Leaf()
	begin := issued(leaf)
	return begin.Add(leaf.NotAfter.Sub(begin) / 3 * 2)
}

// Expired reports whether the leaf has expired.
func (c *Credentials) Expired(now time.Time) bool { return now.After(c.Leaf().NotAfter) }

// Renew takes a new certificate for the present key, and saves it first. After an error the previous one
// stays in use. If another process has enrolled this host with another key meanwhile, Renew switches to this
// identity.
func (c *Credentials) Renew(grant IssuedCert) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	was := c.current.Load()
	granted, err := parseIssuedCert(grant)
	if err != nil {
		return err
	}
	if !was.key.isOf(granted.leaf) {
		return errOtherKey
	}
	if len(granted.servers) == 0 {
		granted.servers = was.servers
	}
	if grant.Roster == nil {
		granted.roster = was.roster
	}
	granted = granted.with(was.key)
	if err := was.sameHost(granted); err != nil {
		return err
	}
	if c.dir != "" {
		if granted, err = renewDir(c.dir, granted); err != nil {
			return err
		}
	}
	return c.replace(granted)
}

// replace switches to another bundle of the same host.
func (c *Credentials) replace(m *bundle) error {
	if err := c.current.Load().sameHost(m); err != nil {
		return err
	}
	c.current.Store(m)
	return nil
}

// SetServers saves other addresses.
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

// Reload reads the directory again: another process of this host may have renewed or enrolled it. It
// returns an error for another name.
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
	return c.replace(loaded)
}
