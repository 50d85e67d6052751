package namespace

import (
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
	if changed.mtime != in.mtime && ns.rules.byPattern.Len() > 0 {
		ns.judgeAgain(ns.tree.judgedNames(in)...)
	}
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
