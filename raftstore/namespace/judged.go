package namespace

import (
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// The caller's kernel has judged whether he may take a name away, by the inode that it found there. Another one may have taken
// the name meanwhile, on another host.

// mayTake tells whether what the kernel judged goes for what is there now: it is the same inode, or one that the sticky bit
// (unlink(2)) surely lets the caller take. judged is nil where nothing is known, and 0 for a name that was free.
func (t *tree) mayTake(by *storepb.Caller, judged *uint64, e *entry, in *inode) bool {
	if judged == nil || ids.Inode(*judged) == e.ino || by.GetUid() == 0 {
		return true
	}
	dir, found := t.inode(e.parent)
	return found && (dir.mode&syscall.S_ISVTX == 0 || by.GetUid() == in.uid || by.GetUid() == dir.uid)
}

// mayLeave tells whether an inode may be moved to another directory. Of a directory the kernel has judged whether the
// caller may write to it.
func mayLeave(by *storepb.Caller, judged *uint64, e *entry, in *inode, to ids.Inode) bool {
	return !in.isDir() || e.parent == to || judged == nil || ids.Inode(*judged) == e.ino || by.GetUid() == 0
}

// refuseUnjudged judges the two names of a rename. The inode of one that is free is nil.
func (w *warden) refuseUnjudged(
	by *storepb.Caller, op *storepb.Rename, source, target *entry, moved, replaced *inode,
) *storepb.Result {
	allowed := w.tree.mayTake(by, op.Judged, source, moved) && mayLeave(by, op.Judged, source, moved, target.parent)
	if replaced != nil {
		allowed = allowed && w.tree.mayTake(by, op.NewJudged, target, replaced)
	}
	if replaced != nil && op.GetExchange() {
		allowed = allowed && mayLeave(by, op.NewJudged, target, replaced, source.parent)
	}
	if allowed {
		return nil
	}
	return fail(storepb.Code_NOT_JUDGED)
}
