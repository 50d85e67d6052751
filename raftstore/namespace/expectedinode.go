package namespace

import (
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// The caller's kernel has checked whether the caller may remove a name, by the inode it found there. A call
// on another host may have replaced the inode since.

// isExpectedInode reports whether the kernel's check is valid for the present inode. It is the checked inode,
// or the sticky bit (unlink(2)) surely allows it to the caller. judged is nil if unknown, and 0 for a name
// that was free.
func (t *tree) isExpectedInode(by *storepb.Caller, judged *uint64, e *entry, in *inode) bool {
	if judged == nil || ids.Inode(*judged) == e.ino || by.GetUid() == 0 {
		return true
	}
	dir, found := t.inode(e.parent)
	return found && (dir.mode&syscall.S_ISVTX == 0 || by.GetUid() == in.uid || by.GetUid() == dir.uid)
}

// mayChangeDirectory reports whether an inode may move to another directory. For a directory, the kernel has
// checked the caller's write permission on it.
func mayChangeDirectory(by *storepb.Caller, judged *uint64, e *entry, in *inode, to ids.Inode) bool {
	return !in.isDir() || e.parent == to || judged == nil || ids.Inode(*judged) == e.ino || by.GetUid() == 0
}

// refuseUnexpected checks both names of a rename. replaced is nil for a free target.
func (w *guard) refuseUnexpected(
	by *storepb.Caller, op *storepb.Rename, source, target *entry, moved, replaced *inode,
) *storepb.Result {
	allowed := w.tree.isExpectedInode(by, op.Judged, source, moved) && mayChangeDirectory(by, op.Judged, source, moved, target.parent)
	if replaced != nil {
		allowed = allowed && w.tree.isExpectedInode(by, op.NewJudged, target, replaced)
	}
	if replaced != nil && op.GetExchange() {
		allowed = allowed && mayChangeDirectory(by, op.NewJudged, target, replaced, source.parent)
	}
	if allowed {
		return nil
	}
	return fail(storepb.Code_NOT_JUDGED)
}
