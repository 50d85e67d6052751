package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
)

// touch notes that what is known of an inode changes: its attributes, content and names, and the names in it.
func (t *tree) touch(ino ids.Inode) {
	t.touched = append(t.touched, ino)
}

// touchEntry is touch for both whom a name belongs to.
func (t *tree) touchEntry(e *entry) {
	t.touch(e.parent)
	t.touch(e.ino)
}

// looksLike tells whether nobody who asks for a name, its inode or its directory is answered anything else.
func (e *entry) looksLike(other *entry) bool {
	return e.ino == other.ino && e.cookie == other.cookie && e.token == other.token && e.lock == other.lock && e.exclusive == other.exclusive
}

// MayLease tells whether leaders may have given leases on what they answered: then what is applied is not shown by anybody but the
// leader, which knows of them.
func (ns *Namespace) MayLease() bool { return ns.leases }

// Touched tells what the last command changed, and the time that passed with it: after it, a query whose Keys are none of these
// is answered as before. own says whether the command itself changed something: what did not may have failed for a reason that
// lies anywhere, or is a repetition. It is no part of the state.
func (ns *Namespace) Touched() (inodes []ids.Inode, own bool) {
	inodes = slices.Clone(ns.tree.touched)
	slices.Sort(inodes)
	return slices.Compact(inodes), ns.touchedOwn
}
