package identity

import (
	"path/filepath"

	"lockfs/cluster/atomicfile"
)

// RosterVersion returns the version of the host's roster; 0: none.
func (c *Credentials) RosterVersion() uint64 { return c.current.Load().roster.Version }

// SetRoster saves a roster and its CAs (DER, the signing one first), which replace the trusted ones. It is on
// disk when SetRoster returns. It takes effect even after an error. Omitted CAs are not trusted any more.
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
	if err != nil { // the leader sends it again, and it is written then
		next.roster = &Roster{Members: roster.Members, Revoked: roster.Revoked}
	}
	c.current.Store(next.with(was.key))
	return err
}

// writeRoster writes the CAs first: a host without the roster gets it again.
func (c *Credentials) writeRoster(m *bundle) error {
	return locked(c.dir, func() error {
		there, err := readDir(c.dir)
		if err != nil || !there.key.isOf(m.leaf) { // another process has enrolled this host with another key, and has its own
			return err
		}
		if err := writeCertificates(filepath.Join(c.dir, authoritiesFile), m.authorities); err != nil {
			return err
		}
		return atomicfile.Replace(filepath.Join(c.dir, rosterFile), m.roster.lines())
	})
}
