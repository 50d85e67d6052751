package identity

import (
	"path/filepath"

	"lockfs/cluster/durable"
)

// RosterVersion is the version of the roster that the host has; 0: it has none.
func (c *Credentials) RosterVersion() uint64 { return c.current.Load().roster.Version }

// SetRoster keeps a roster, and the authorities that came with it (DER, the one that signs first) in place of those that were trusted. It is on disk
// when SetRoster returns, and in force also if that fails. Authorities that are dropped are not trusted any more.
func (c *Credentials) SetRoster(roster *Roster, authorities [][]byte) error {
	trusted, err := parseCertificates("an authority", authorities)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	was := c.current.Load()
	next, err := newBundle(was.leaf, was.chain, trusted, was.servers)
	if err != nil {
		return err
	}
	next.roster = roster
	if c.dir != "" {
		err = c.writeRoster(next)
	}
	if err != nil { // it is told again, and written then
		next.roster = &Roster{Members: roster.Members, Revoked: roster.Revoked}
	}
	c.current.Store(next.with(was.key))
	return err
}

// writeRoster writes the authorities first: a host that has them without the roster is told it once more.
func (c *Credentials) writeRoster(m *bundle) error {
	return locked(c.dir, func() error {
		there, err := readDir(c.dir)
		if err != nil || !there.key.isOf(m.leaf) { // another process has enrolled this host with another key, and has its own
			return err
		}
		if err := writeCertificates(filepath.Join(c.dir, authoritiesFile), m.authorities); err != nil {
			return err
		}
		return durable.Replace(filepath.Join(c.dir, rosterFile), m.roster.lines())
	})
}
