package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// undoneReason is the reason of events about names Cancel removes.
const undoneReason = "its creation was undone: the caller got no answer"

func undoOf(made *entry) *storepb.Undo {
	return &storepb.Undo{Ino: uint64(made.ino), Parent: uint64(made.parent), Name: []byte(made.name), MadeIndex: uint64(made.createdAt)}
}

// cancel settles a number with a reply the session will not use.
func (ns *Namespace) cancel(session ids.Session, seq ids.Sequence) *storepb.Result {
	s, found := ns.sessions.byID.Get(session)
	if !found {
		return fail(storepb.Code_SESSION_FORGOTTEN)
	}
	if seq <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	ns.sessions.acknowledge(ns.index, s, 0)
	done, found := ns.sessions.reply(session, seq)
	switch {
	case !found && s.replies >= 2*MaxReplies:
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	case found && done.undo != nil:
		ns.undo(session, done.undo)
	}
	ns.locks.Cancel(session, seq)
	ns.sessions.keepReply(&reply{session: session, seq: seq, result: fail(storepb.Code_CANCELLED)})
	return ok()
}

// undo reverts an exclusive creation with a lost reply. It does nothing if the name has another inode or
// was given again. The same holds if a process has locked the inode, requested a lock, or changed its
// content, attributes, names or entries. Processes that only opened it can then neither lock nor write to it.
//
// If a rename cannot go back because its old name is taken, undo removes the new name: its caller assumes
// that it never existed.
func (ns *Namespace) undo(session ids.Session, undo *storepb.Undo) {
	e, found := ns.tree.entry(ids.Inode(undo.GetParent()), undo.GetName())
	if !found || e.ino != ids.Inode(undo.GetIno()) || e.createdAt != ids.Index(undo.GetMadeIndex()) {
		return
	}
	in, found := ns.tree.inode(e.ino)
	if !found || in.changed != ids.Index(undo.GetMadeIndex()) || ns.wasLockedAs(e, in) {
		return
	}
	if undo.GetBackParent() != 0 && ns.undoRename(e, in, undo) {
		return
	}
	if ns.tree.isFull(in) {
		return
	}
	ns.emitReleased(e, in, nil, undoneReason, "")
	ns.tree.releasePins(ns.removeEntry(session, e, in))
}

func (ns *Namespace) undoRename(e *entry, in *inode, undo *storepb.Undo) bool {
	if _, code := ns.tree.directory(ids.Inode(undo.GetBackParent())); code != storepb.Code_OK {
		return false
	}
	if _, taken := ns.tree.entry(ids.Inode(undo.GetBackParent()), undo.GetBackName()); taken {
		return false
	}
	if ns.tree.mayMove(in, ids.Inode(undo.GetBackParent())) != storepb.Code_OK {
		return false
	}
	back := &entry{parent: ids.Inode(undo.GetBackParent()), name: string(undo.GetBackName())}
	if ns.refuseReevaluation(e, back, in) != nil {
		return false
	}
	ns.move(nil, e, back, in, nil, &moveOptions{
		maker: creatorFrom(undo.GetBackMaker()), exclusive: undo.GetBackExclusive(), says: undo.GetBackSays(), reason: undoneReason,
		creator: &storepb.Caller{Host: undo.GetBackMadeOn(), Pid: undo.GetBackMadeBy()},
	})
	return true
}
