package advisory

import (
	"cmp"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
)

// FileUser is a user of one file, on all hosts.
type FileUser struct {
	Ino ids.Inode
	UID uint32
}

// Compare orders by file and uid.
func (f FileUser) Compare(other FileUser) int {
	return cmp.Or(cmp.Compare(f.Ino, other.Ino), cmp.Compare(f.UID, other.UID))
}

// counts is how many locks and requests there are. Users and hosts have no share in the locks that their owners have lost, which go soon.
type counts struct {
	sessions budget.Counts[ids.Session]
	users    budget.Counts[budget.User]
	hosts    budget.Counts[string]
	files    budget.Counts[FileUser]
}

func (c *counts) add(a *lock, by int64) {
	c.sessions.Add(a.session, by)
	if a.until == 0 {
		c.users.Add(a.user, by)
		c.hosts.Add(a.user.Host, by)
		c.files.Add(FileUser{a.ino, a.user.UID}, by)
	}
}

func (c *counts) equal(other *counts) bool {
	return c.sessions.Equal(&other.sessions) && c.users.Equal(&other.users) && c.hosts.Equal(&other.hosts) && c.files.Equal(&other.files)
}

// Used returns how many locks and requests a user has on a host, all users have there, and the user has in one file on all hosts.
func (t *Table) Used(by budget.User, ino ids.Inode) (ofUser, ofHost, ofFile uint64) {
	return t.counts.users.Used(by), t.counts.hosts.Used(by.Host), t.counts.files.Used(FileUser{ino, by.UID})
}

// LargestUsers returns the users that have most locks and requests, at most so many.
func (t *Table) LargestUsers(most int) []budget.Use[budget.User] {
	return t.counts.users.Largest(most, budget.User.Compare)
}

// LargestHosts returns the hosts with most locks and requests, at most so many.
func (t *Table) LargestHosts(most int) []budget.Use[string] {
	return t.counts.hosts.Largest(most, cmp.Compare[string])
}

// LargestInFiles returns the users that have most locks and requests in one file, at most so many.
func (t *Table) LargestInFiles(most int) []budget.Use[FileUser] {
	return t.counts.files.Largest(most, FileUser.Compare)
}

// Splits reports whether a command releases the middle of a lock, so that its owner has one more.
func (t *Table) Splits(want *Wanted) bool { return want.unlock && t.splits(&want.lock) }

// Has reports whether a session has locks or requests.
func (t *Table) Has(session ids.Session) bool { return t.counts.sessions.Used(session) > 0 }
