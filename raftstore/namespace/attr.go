package namespace

import (
	"bytes"
	"slices"
	"strings"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) setAttr(by *storepb.Caller, op *storepb.SetAttr) *storepb.Result {
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	if op.Mode != nil && op.GetMode()&^modeBits != 0 {
		return fail(storepb.Code_INVALID)
	}
	changed := *in
	if op.Mode != nil {
		changed.mode = in.mode&syscall.S_IFMT | op.GetMode()
	}
	if op.Uid != nil {
		changed.uid, changed.budgetUID = op.GetUid(), by.GetBudgetUid()
	}
	if op.Gid != nil {
		changed.gid = op.GetGid()
	}
	if by.GetSquashed() && op.Mode != nil {
		changed.mode = withoutForeignGroup(by, changed.mode, changed.gid)
	}
	changed.atime = newTime(in.atime, op.Atime, op.GetAtimeNow(), ns.time)
	changed.mtime = newTime(in.mtime, op.Mtime, op.GetMtimeNow(), ns.time)
	changed.ctime, changed.changed = ns.time, ns.index
	ns.tree.putInode(&changed)
	ns.judgeTimes(in, &changed)
	return &storepb.Result{Attr: changed.attr()}
}

func newTime(old int64, explicit *int64, useNow bool, now int64) int64 {
	switch {
	case useNow:
		return now
	case explicit != nil:
		return *explicit
	}
	return old
}

// xattrPrefix is the prefix of all supported extended attributes.
const xattrPrefix = "user."

// LockXattrs is the prefix of the attributes by which a mount describes a lock. The state has none of them.
const LockXattrs = "user.lockfs."

func (ns *Namespace) setXattr(by *storepb.Caller, op *storepb.SetXattr) *storepb.Result {
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	if code := checkXattrName(op.GetName()); code != storepb.Code_OK {
		return fail(code)
	}
	at, exists := findXattr(in.xattrs, op.GetName())
	switch {
	case exists && op.GetMustCreate():
		return fail(storepb.Code_EXISTS)
	case !exists && op.GetMustReplace():
		return fail(storepb.Code_NO_ATTRIBUTE)
	}
	attribute := &storepb.Xattr{Name: op.GetName(), Value: op.GetValue()}
	xattrs := slices.Clone(in.xattrs)
	if exists {
		xattrs[at] = attribute
	} else {
		xattrs = slices.Insert(xattrs, at, attribute)
	}
	if xattrBytes(xattrs) > MaxXattrs {
		return fail(storepb.Code_NO_SPACE)
	}
	larger := *in
	larger.xattrs = xattrs
	if refused := ns.refuseGrowth(in.bytes(), larger.bytes()); refused != nil {
		return refused
	}
	if code := ns.tree.usage.room(by, in.payer(), 0, larger.bytes()-in.bytes()); code != storepb.Code_OK {
		return ns.tree.usage.refuse(code, in.payer())
	}
	if refused := refuseBelow(ns.tree.roomToGrow(in, &larger, nil)); refused != nil {
		return refused
	}
	ns.replaceXattrs(in, xattrs)
	return ok()
}

func (ns *Namespace) removeXattr(op *storepb.RemoveXattr) *storepb.Result {
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	at, exists := findXattr(in.xattrs, op.GetName())
	if !exists {
		return fail(storepb.Code_NO_ATTRIBUTE)
	}
	ns.replaceXattrs(in, slices.Delete(slices.Clone(in.xattrs), at, at+1))
	return ok()
}

func (ns *Namespace) replaceXattrs(in *inode, xattrs []*storepb.Xattr) {
	changed := *in
	changed.xattrs = xattrs
	changed.ctime, changed.changed = ns.time, ns.index
	ns.tree.putInode(&changed)
	ns.judgeTimes(in, &changed)
}

func checkXattrName(name []byte) storepb.Code {
	switch {
	case !strings.HasPrefix(string(name), xattrPrefix):
		return storepb.Code_UNSUPPORTED
	case len(name) == len(xattrPrefix) || bytes.IndexByte(name, 0) >= 0:
		return storepb.Code_INVALID
	case len(name) > MaxName:
		return storepb.Code_NAME_TOO_LONG
	case strings.HasPrefix(string(name), LockXattrs):
		return storepb.Code_NOT_PERMITTED
	}
	return storepb.Code_OK
}

func findXattr(xattrs []*storepb.Xattr, name []byte) (at int, found bool) {
	return slices.BinarySearchFunc(xattrs, name, func(x *storepb.Xattr, name []byte) int {
		return bytes.Compare(x.GetName(), name)
	})
}
