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

// counts are the numbers of locks and requests. Lost locks, which expire soon, do not count for users and
// hosts.
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
