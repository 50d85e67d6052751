package raftstore

import (
	"syscall"

	"lockfs/raftstore/storepb"
)

func (ns *Namespace) setAttr(op *storepb.SetAttr) *storepb.Result {
	in, found := ns.inodes.Get(op.GetIno())
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
		changed.uid = op.GetUid()
	}
	if op.Gid != nil {
		changed.gid = op.GetGid()
	}
	changed.atime = newTime(in.atime, op.Atime, op.GetAtimeNow(), ns.time)
	changed.mtime = newTime(in.mtime, op.Mtime, op.GetMtimeNow(), ns.time)
	changed.ctime = ns.time
	ns.putInode(&changed)
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

// setContent is the compare-and-set that every write and truncation is made of.
func (ns *Namespace) setContent(session uint64, op *storepb.SetContent) *storepb.Result {
	in, found := ns.inodes.Get(op.GetIno())
	switch {
	case !found || !ns.mayWrite(session, in):
		return fail(storepb.Code_STALE)
	case in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case !in.isFile():
		return fail(storepb.Code_INVALID)
	case len(op.GetContent()) > MaxContent:
		return fail(storepb.Code_FILE_TOO_BIG)
	case in.version != op.GetIfVersion():
		return fail(storepb.Code_CONFLICT)
	}
	return &storepb.Result{Attr: ns.replaceContent(in, op.GetContent()).attr()}
}

func (ns *Namespace) replaceContent(in *inode, content []byte) *inode {
	changed := *in
	changed.content = content
	changed.version = ns.index
	changed.mtime, changed.ctime = ns.time, ns.time
	ns.putInode(&changed)
	return &changed
}
