package namespace

import "lockfs/raftstore/ids"

// keeper changes names and updates everything derived from them: whether they are locks, since when, and
// events.
type keeper struct {
	warden
	removed []Removal // by the last command; not part of the state
}

// Removal is an inode that lost its last name.
type Removal struct {
	Session ids.Session // that removed it, so its kernel knows; 0: lockfs itself, or a removal by force
	Parent  ids.Inode
	Name    string
	Ino     ids.Inode
}
