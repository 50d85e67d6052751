package namespace

import "lockfs/raftstore/ids"

// keeper changes names, with all that follows of it: whether they are locks, since when, and what is told of them.
type keeper struct {
	warden
	removed []Removal // by the last command; not part of the state
}

// Removal is an inode that lost its last name.
type Removal struct {
	Session ids.Session // that removed it and whose kernel knows; 0: lockfs itself, or somebody by force
	Parent  ids.Inode
	Name    string
	Ino     ids.Inode
}
