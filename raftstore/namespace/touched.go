package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
)

// touch records a change of an inode: its attributes, content, names or entries.
func (t *tree) touch(ino ids.Inode) {
	t.touched = append(t.touched, ino)
}

func (t *tree) touchEntry(e *entry) {
	t.touch(e.parent)
	t.touch(e.ino)
}

// looksLike reports whether all queries for a name, its inode or its directory have the same answers.
func (e *entry) looksLike(other *entry) bool {
	return e.ino == other.ino && e.cookie == other.cookie && e.token == other.token && e.lock == other.lock && e.exclusive == other.exclusive
}

// MayLease reports whether leaders may have granted leases on their answers. Then only the leader, which
// knows the leases, shows applied commands.
func (ns *Namespace) MayLease() bool { return ns.leases }

// Touched returns the inodes changed by the last command and the time that passed with it. A query with none
// of these among its Keys has the same answer as before. own says whether the command itself changed
// something. If not, it may be a repetition, or have failed for any reason. The result is not part of the
// state.
func (ns *Namespace) Touched() (inodes []ids.Inode, own bool) {
	inodes = slices.Clone(ns.tree.touched)
	slices.Sort(inodes)
	return slices.Compact(inodes), ns.touchedOwn
}
