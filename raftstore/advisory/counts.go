package advisory

import (
	"cmp"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
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

// MostRanges is how many different ranges of one file a user's requests may wait for. A release looks at each
// different request for its bytes, so this bounds its cost.
const MostRanges = 1024

// userRange is a type and a range of a file for which requests of a user wait.
type userRange struct {
	FileUser
	kind       storepb.LockKind
	exclusive  bool
	start, end uint64
}

// counts are the numbers of locks and requests. Lost locks, which expire soon, do not count for users and
// hosts.
type counts struct {
	sessions budget.Counts[ids.Session]
	users    budget.Counts[budget.User]
	hosts    budget.Counts[string]
	files    budget.Counts[FileUser]
	requests budget.Counts[userRange]
	ranges   budget.Counts[FileUser] // different keys of requests
}

func (c *counts) add(a *lock, by int64) {
	c.sessions.Add(a.session, by)
	if a.until == 0 {
		c.users.Add(a.user, by)
		c.hosts.Add(a.user.Host, by)
		c.files.Add(FileUser{a.ino, a.user.UID}, by)
	}
}

func (c *counts) addRequest(a *lock, by int64) {
	c.add(a, by)
	key := rangeOf(a)
	before := c.requests.Used(key)
	c.requests.Add(key, by)
	if after := c.requests.Used(key); before == 0 || after == 0 {
		c.ranges.Add(key.FileUser, by)
	}
}

func rangeOf(a *lock) userRange {
	return userRange{FileUser{a.ino, a.user.UID}, a.kind, a.exclusive, a.start, a.end}
}

// hasRoomForRange reports whether another request may wait. Nothing binds root.
func (c *counts) hasRoomForRange(a *lock) bool {
	return a.user.UID == 0 || c.requests.Used(rangeOf(a)) > 0 || c.ranges.Used(FileUser{a.ino, a.user.UID}) < MostRanges
}

func (c *counts) equal(other *counts) bool {
	return c.sessions.Equal(&other.sessions) && c.users.Equal(&other.users) && c.hosts.Equal(&other.hosts) && c.files.Equal(&other.files) &&
		c.requests.Equal(&other.requests) && c.ranges.Equal(&other.ranges)
}
