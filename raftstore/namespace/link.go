package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) link(caller *storepb.Caller, op *storepb.Link) (*storepb.Result, *storepb.Undo) {
	if code := checkName(op.GetName()); code != storepb.Code_OK {
		return fail(code), nil
	}
	if _, code := ns.tree.directory(ids.Inode(op.GetParent())); code != storepb.Code_OK {
		return fail(code), nil
	}
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	switch {
	case !found || in.nlink == 0:
		return fail(storepb.Code_NOT_FOUND), nil
	case in.isDir():
		return fail(storepb.Code_NOT_PERMITTED), nil
	case in.nlink >= maxLinksBy(caller, in):
		return fail(storepb.Code_TOO_MANY_LINKS), nil
	}
	if _, taken := ns.tree.entry(ids.Inode(op.GetParent()), op.GetName()); taken {
		return fail(storepb.Code_EXISTS), nil
	}
	if refused := ns.refuseGrowth(0, nameOverhead); refused != nil {
		return refused, nil
	}
	if refused := ns.mayHaveMore(caller, in); refused != nil {
		return refused, nil
	}
	made := &entry{parent: ids.Inode(op.GetParent()), name: string(op.GetName()), ino: in.ino}
	var code storepb.Code
	if made.creator, code = ns.creatorOf(caller, made); code != storepb.Code_OK {
		return fail(code), nil
	}
	made.known = in.facts
	linked := *in
	if refused := ns.tree.roomForName(caller, &linked, 0, made.bytes()); refused != nil {
		return refused, nil
	}
	if code := ns.tree.roomBelow(made.parent, 1, in.bytesByName()+made.bytes()); code != storepb.Code_OK {
		return refuseBelow(code), nil
	}
	made.cookie = ns.tree.newCookie()
	in = ns.changeLinks(ns.prepareForMore(&linked), +1)
	made.known = in.facts
	made = ns.acquire(caller, made, in, acquisition{exclusive: true, says: op.GetSays(), done: true})
	ns.touchDir(ids.Inode(op.GetParent()), 0)
	return &storepb.Result{Attr: in.attr(), Observations: ns.observations(made)}, undoOf(made)
}

// maxRequest bounds the name of a request in an event, in bytes.
const maxRequest = 1 << 10

func (ns *Namespace) unlink(cmd *storepb.Command, op *storepb.Unlink) *storepb.Result {
	if len(op.GetRequest()) > maxRequest {
		return fail(storepb.Code_INVALID)
	}
	if _, code := ns.tree.directory(ids.Inode(op.GetParent())); code != storepb.Code_OK {
		return fail(code)
	}
	e, found := ns.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	in, found := ns.tree.inode(e.ino)
	switch {
	case !found, op.GetIfToken() != 0 && ids.Token(op.GetIfToken()) != e.token:
		return fail(storepb.Code_NOT_FOUND)
	case !ns.tree.isExpectedInode(cmd.GetCaller(), op.Judged, e, in):
		return fail(storepb.Code_NOT_JUDGED)
	case op.GetDirectory() && !in.isDir():
		return fail(storepb.Code_NOT_DIRECTORY)
	case !op.GetDirectory() && in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case ns.tree.isFull(in):
		if refused := ns.refuseByObservation(cmd.GetCaller(), op.GetObservations(), e, in, takeAway); refused != nil {
			return refused // it is full because it is another directory
		}
		return fail(storepb.Code_NOT_EMPTY)
	}
	if refused := ns.refuseUnlink(cmd.GetCaller(), op, e, in); refused != nil {
		return refused
	}
	ns.emitFileRemoved(ids.Session(cmd.GetSession()), e, in, cmd.GetCaller())
	removed := ns.removeEntry(ids.Session(cmd.GetSession()), e, in)
	ns.tree.pinRemoved(ids.Session(cmd.GetSession()), removed, ids.Inode(op.GetPin()))
	if op.GetForce() && removed != 0 {
		ns.removed[len(ns.removed)-1].Session = 0 // the kernel of the caller knows the inode by another path
	}
	return &storepb.Result{RemovedIno: uint64(removed)}
}

// refuseUnlink checks whether a name may be removed, and emits the event if so.
func (ns *Namespace) refuseUnlink(by *storepb.Caller, op *storepb.Unlink, e *entry, in *inode) *storepb.Result {
	if op.GetForce() {
		e = ns.emitPending(e, in)
		event := ns.lockEvent(eventRemoved, e, in, by)
		event.Reason, event.Request = "by force", op.GetRequest()
		ns.emit(event)
		return nil
	}
	refused := ns.refuseByObservation(by, op.GetObservations(), e, in, takeAway)
	if refused == nil && !ns.heldByOwner(e, in, op.GetOwner()) {
		refused = ns.refuseByGuard(by, e, in, takeAway)
	}
	if refused == nil {
		ns.emitReleased(e, in, by, "", op.GetRequest())
	}
	return refused
}
