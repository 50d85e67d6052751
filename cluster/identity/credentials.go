package identity

import (
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Credentials is what a host shows, and whom it trusts. It is safe for concurrent use. A renewal takes effect with the next handshake of each
// config made of it; connections stay.
type Credentials struct {
	dir string // empty: in memory only

	writing sync.Mutex
	current atomic.Pointer[bundle]
}

// NewCredentials are kept in memory only. The leaf must be for the key, and from one of the authorities.
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

// replace goes on with other material of the same host.
func (c *Credentials) replace(m *bundle) error {
	if err := c.current.Load().sameHost(m); err != nil {
		return err
	}
	c.current.Store(m)
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
	return c.replace(loaded)
}
