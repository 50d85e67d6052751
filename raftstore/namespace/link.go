package namespace

import (
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) link(caller *storepb.Caller, op *storepb.Link) (*storepb.Result, *storepb.Undo) {
	if code := checkName(op.GetName()); code != storepb.Code_OK {
		return fail(code), nil
	}
	if _, code := ns.directory(op.GetParent()); code != storepb.Code_OK {
		return fail(code), nil
	}
	in, found := ns.inodes.Get(op.GetIno())
	switch {
	case !found || in.nlink == 0:
		return fail(storepb.Code_NOT_FOUND), nil
	case in.isDir():
		return fail(storepb.Code_NOT_PERMITTED), nil
	case in.nlink >= maxLinksBy(caller, in):
		return fail(storepb.Code_TOO_MANY_LINKS), nil
	}
	if _, taken := ns.entry(op.GetParent(), op.GetName()); taken {
		return fail(storepb.Code_EXISTS), nil
	}
	made := &entry{parent: op.GetParent(), name: string(op.GetName()), ino: in.ino}
	var code storepb.Code
	if made.maker, code = ns.makerOf(caller, made); code != storepb.Code_OK {
		return fail(code), nil
	}
	made.known = in.facts
	if code := ns.roomForName(caller, in.uid, 0, made.bytes()); code != storepb.Code_OK {
		return fail(code), nil
	}
	made.cookie = ns.newCookie()
	in = ns.changeLinks(in, +1)
	made = ns.acquire(caller, made, in, acquisition{exclusive: true, done: true})
	ns.touchDir(op.GetParent(), 0)
	return &storepb.Result{Attr: in.attr(), Looks: ns.looksAt(made)}, undoOf(made)
}

// maxRequest bounds the name of a request that an event tells, in bytes.
const maxRequest = 1 << 10

func (ns *Namespace) unlink(cmd *storepb.Command, op *storepb.Unlink) *storepb.Result {
	if len(op.GetRequest()) > maxRequest {
		return fail(storepb.Code_INVALID)
	}
	if _, code := ns.directory(op.GetParent()); code != storepb.Code_OK {
		return fail(code)
	}
	e, found := ns.entry(op.GetParent(), op.GetName())
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	in, found := ns.inodes.Get(e.ino)
	switch {
	case !found:
		return fail(storepb.Code_NOT_FOUND)
	case !ns.mayTake(cmd.GetCaller(), op.Judged, e, in):
		return fail(storepb.Code_NOT_JUDGED)
	case op.GetDirectory() && !in.isDir():
		return fail(storepb.Code_NOT_DIRECTORY)
	case !op.GetDirectory() && in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case ns.isFull(in):
		if refused := ns.refuseByLook(cmd.GetCaller(), op.GetLooks(), e, in, takeAway); refused != nil {
			return refused // it is full because it is another one
		}
		return fail(storepb.Code_NOT_EMPTY)
	}
	if refused := ns.refuseUnlink(cmd.GetCaller(), op, e, in); refused != nil {
		return refused
	}
	removed := ns.removeEntry(cmd.GetSession(), e, in)
	ns.pinRemoved(cmd.GetSession(), removed, op.GetPin())
	if op.GetForce() && removed != 0 {
		ns.removed[len(ns.removed)-1].Session = 0 // the kernel that asked for it knows the inode by another path
	}
	return &storepb.Result{RemovedIno: removed}
}

// refuseUnlink judges whether a name may go, and if so tells of it.
func (ns *Namespace) refuseUnlink(by *storepb.Caller, op *storepb.Unlink, e *entry, in *inode) *storepb.Result {
	if op.GetForce() {
		e = ns.announceBefore(e, in)
		event := ns.lockEvent(eventRemoved, e, in, by)
		event.Reason, event.Request = "by force", op.GetRequest()
		ns.emit(event)
		return nil
	}
	refused := ns.refuseByLook(by, op.GetLooks(), e, in, takeAway)
	if refused == nil && !ns.heldByOwner(e, in, op.GetOwner()) {
		refused = ns.refuseByGuard(by, e, in, takeAway)
	}
	if refused == nil {
		ns.emitReleased(e, in, by, "", op.GetRequest())
	}
	return refused
}

// removeEntry takes a name away. It answers the inode's number if that was its last one.
func (ns *Namespace) removeEntry(session uint64, e *entry, in *inode) (removed uint64) {
	ns.deleteEntry(e)
	subdirs := 0
	if in.isDir() {
		subdirs = -1
	}
	ns.touchDir(e.parent, subdirs)
	removed = ns.dropLink(session, in)
	if removed != 0 {
		ns.removed = append(ns.removed, Removal{Session: session, Parent: e.parent, Name: e.name, Ino: removed})
	}
	return removed
}

// dropLink counts a name less; an inode without one becomes an orphan and its number is the answer.
func (ns *Namespace) dropLink(session uint64, in *inode) (removed uint64) {
	links := -1
	if in.isDir() {
		links = -int(in.nlink)
	}
	in = ns.changeLinks(in, links)
	if in.nlink > 0 {
		return 0
	}
	ns.addOrphan(session, in.ino)
	return in.ino
}

func (ns *Namespace) changeLinks(in *inode, by int) *inode {
	changed := *in
	changed.nlink = uint32(int(in.nlink) + by)
	changed.ctime, changed.changed = ns.time, ns.index
	ns.putInode(&changed)
	return &changed
}
