package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Keys returns the inodes on which the result of a query depends. Until one of them is touched, the result
// stays the same, apart from its index. ok is false if it may depend on other inodes.
func Keys(query *storepb.Query, result *storepb.Result) (inodes []ids.Inode, ok bool) {
	switch q := query.GetQuery().(type) {
	case *storepb.Query_GetAttr:
		return keys(q.GetAttr.GetIno(), 0), true
	case *storepb.Query_GetXattrs:
		return keys(q.GetXattrs.GetIno(), 0), true
	case *storepb.Query_ReadDir:
		return keys(q.ReadDir.GetIno(), 0), true
	case *storepb.Query_Lookup:
		return keys(q.Lookup.GetParent(), result.GetAttr().GetIno()), true
	case *storepb.Query_Read:
		return keys(q.Read.GetIno(), q.Read.GetName().GetParent()), true
	}
	return nil, false
}

func keys(ino, other uint64) []ids.Inode {
	if other == 0 || other == ino {
		return []ids.Inode{ids.Inode(ino)}
	}
	return []ids.Inode{ids.Inode(ino), ids.Inode(other)}
}

// Foreseen returns the inodes an operation will touch, as far as it shows.
func (ns *Namespace) Foreseen(op *storepb.Op) (inodes []ids.Inode) {
	name := func(parent uint64, name []byte) {
		inodes = append(inodes, ids.Inode(parent))
		if e, found := ns.tree.entry(ids.Inode(parent), name); found {
			inodes = append(inodes, e.ino)
		}
	}
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		name(op.Create.GetParent(), nil)
	case *storepb.Op_Link:
		name(op.Link.GetParent(), nil)
		inodes = append(inodes, ids.Inode(op.Link.GetIno()))
	case *storepb.Op_Unlink:
		name(op.Unlink.GetParent(), op.Unlink.GetName())
	case *storepb.Op_Rename:
		name(op.Rename.GetParent(), op.Rename.GetName())
		name(op.Rename.GetNewParent(), op.Rename.GetNewName())
	case *storepb.Op_SetAttr:
		inodes = append(inodes, ids.Inode(op.SetAttr.GetIno()))
	case *storepb.Op_SetContent:
		inodes = append(inodes, ids.Inode(op.SetContent.GetIno()))
	case *storepb.Op_SetXattr:
		inodes = append(inodes, ids.Inode(op.SetXattr.GetIno()))
	case *storepb.Op_RemoveXattr:
		inodes = append(inodes, ids.Inode(op.RemoveXattr.GetIno()))
	}
	return inodes
}

// ChangedAt returns the cluster time of an inode's last change; 0: no such inode.
func (ns *Namespace) ChangedAt(ino ids.Inode) int64 {
	in, found := ns.tree.inode(ino)
	if !found {
		return 0
	}
	return in.ctime
}

// Settled reports whether an inode has not changed since a time. until is when lockfs next changes one of its
// names by itself; 0: never.
func (ns *Namespace) Settled(ino ids.Inode, since int64) (settled bool, until int64) {
	in, found := ns.tree.inode(ino)
	if !found || in.ctime > since || in.nlink == 0 {
		return false, 0
	}
	if in.isDir() {
		return true, 0
	}
	for _, e := range ns.tree.evaluatedNames(in) {
		if e.due != 0 && (until == 0 || e.due < until) {
			until = e.due
		}
	}
	return true, until
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
