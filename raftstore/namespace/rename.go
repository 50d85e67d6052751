package namespace

import (
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) rename(cmd *storepb.Command, op *storepb.Rename) (*storepb.Result, *storepb.Undo) {
	source, target, code := ns.renameSides(op)
	if code != storepb.Code_OK {
		return fail(code), nil
	}
	if op.GetExchange() {
		return ns.exchange(cmd.GetCaller(), op, source, target), nil
	}
	if target.ino == source.ino {
		return ok(), nil // two names of one inode: both stay (rename(2))
	}
	moved, found := ns.inodes.Get(source.ino)
	if !found {
		return fail(storepb.Code_NOT_FOUND), nil
	}
	if code := ns.mayMove(moved, target.parent); code != storepb.Code_OK {
		return fail(code), nil
	}
	var replaced *inode
	if target.ino != 0 {
		if replaced, found = ns.inodes.Get(target.ino); !found {
			return fail(storepb.Code_NOT_FOUND), nil
		}
		if code := ns.mayReplace(moved, replaced); code != storepb.Code_OK {
			return fail(code), nil
		}
	}
	if refused := ns.refuseRename(cmd.GetCaller(), op, source, target, moved, replaced); refused != nil {
		return refused, nil
	}
	by, code := ns.makerOf(cmd.GetCaller(), target)
	if code != storepb.Code_OK {
		return fail(code), nil
	}
	var removed uint64
	if replaced != nil {
		removed = ns.removeEntry(cmd.GetSession(), target, replaced)
		ns.pinRemoved(cmd.GetSession(), removed, op.GetPin())
	}
	made := ns.move(cmd.GetCaller(), source, target, moved, replaced, &moving{maker: by, exclusive: op.GetNoReplace(), reason: "it was renamed"})

	var undo *storepb.Undo
	if op.GetNoReplace() {
		undo = undoOf(made)
		undo.BackParent, undo.BackName = source.parent, op.GetName()
		undo.BackExclusive, undo.BackMaker = source.exclusive, source.maker.message()
	}
	return &storepb.Result{RemovedIno: removed, Looks: ns.looksAt(made)}, undo
}

// refuseRename asks for both names: the one that goes, with all that is below it, and the one that is
// replaced.
func (ns *Namespace) refuseRename(
	by *storepb.Caller, op *storepb.Rename, source, target *entry, moved, replaced *inode,
) *storepb.Result {
	if refused := ns.refuseUnjudged(by, op, source, target, moved, replaced); refused != nil {
		return refused
	}
	if refused := ns.refuse(by, op.GetLooks(), source, moved, takeAway); refused != nil {
		return refused
	}
	if moved.isDir() {
		if refused := ns.refuseBelow(by, moved); refused != nil {
			return refused
		}
	}
	if replaced == nil {
		return nil
	}
	return ns.refuse(by, op.GetLooks(), target, replaced, overwrite)
}

// renameSides answers the two names; the target's inode number is 0 when that name is free.
func (ns *Namespace) renameSides(op *storepb.Rename) (source, target *entry, code storepb.Code) {
	if op.GetNoReplace() && op.GetExchange() {
		return nil, nil, storepb.Code_INVALID
	}
	if code := checkName(op.GetNewName()); code != storepb.Code_OK {
		return nil, nil, code
	}
	for _, dir := range []uint64{op.GetParent(), op.GetNewParent()} {
		if _, code := ns.directory(dir); code != storepb.Code_OK {
			return nil, nil, code
		}
	}
	source, found := ns.entry(op.GetParent(), op.GetName())
	if !found {
		return nil, nil, storepb.Code_NOT_FOUND
	}
	target, taken := ns.entry(op.GetNewParent(), op.GetNewName())
	switch {
	case taken && op.GetNoReplace():
		return nil, nil, storepb.Code_EXISTS
	case !taken && op.GetExchange():
		return nil, nil, storepb.Code_NOT_FOUND
	case !taken:
		target = &entry{parent: op.GetNewParent(), name: string(op.GetNewName())}
	}
	return source, target, storepb.Code_OK
}

// mayMove refuses to put a directory below itself or too deep.
func (ns *Namespace) mayMove(moved *inode, newParent uint64) storepb.Code {
	if !moved.isDir() || moved.parent == newParent {
		return storepb.Code_OK
	}
	for dir := newParent; dir != RootIno; {
		if dir == moved.ino {
			return storepb.Code_INVALID
		}
		in, found := ns.inodes.Get(dir)
		if !found {
			break
		}
		dir = in.parent
	}
	if ns.depth(newParent)+1+ns.height(moved) > MaxDepth {
		return storepb.Code_NAME_TOO_LONG
	}
	return storepb.Code_OK
}

// height is the number of directory levels below dir.
func (ns *Namespace) height(dir *inode) int {
	if dir.nlink <= 2 {
		return 0
	}
	highest := 0
	ns.byName.Ascend(&entry{parent: dir.ino}, func(e *entry) bool {
		if e.parent != dir.ino {
			return false
		}
		if child, found := ns.inodes.Get(e.ino); found && child.isDir() {
			highest = max(highest, 1+ns.height(child))
		}
		return true
	})
	return highest
}

func (ns *Namespace) mayReplace(moved, replaced *inode) storepb.Code {
	switch {
	case moved.isDir() && !replaced.isDir():
		return storepb.Code_NOT_DIRECTORY
	case !moved.isDir() && replaced.isDir():
		return storepb.Code_IS_DIRECTORY
	case replaced.isDir() && ns.hasEntries(replaced.ino):
		return storepb.Code_NOT_EMPTY
	}
	return storepb.Code_OK
}

// moving says how a name is moved.
type moving struct {
	maker     *maker // of the new name
	exclusive bool   // the new name was free for sure
	reason    string
}

// move gives source's inode the target's name. A name that was replaced keeps its place in listings.
func (ns *Namespace) move(by *storepb.Caller, source, target *entry, moved, replaced *inode, how *moving) (made *entry) {
	if source.announced {
		ns.emitReleased(source, moved, by, how.reason, "")
	}
	ns.deleteEntry(source)
	moved = ns.reparent(moved, target.parent)
	if replaced != nil {
		made = ns.succeed(by, target, source, replaced, moved, how.maker)
	} else {
		free := &entry{parent: target.parent, name: target.name, ino: moved.ino, cookie: ns.newCookie(), maker: how.maker}
		free.stale = source.stale.withoutMaker()
		made = ns.acquire(by, free, moved, acquisition{exclusive: how.exclusive, done: true})
	}
	if moved.isDir() {
		ns.judgeBelow(moved.ino)
	}
	subdirs := 0
	if moved.isDir() {
		subdirs = 1
	}
	ns.touchDir(source.parent, -subdirs)
	ns.touchDir(target.parent, subdirs)
	return made
}

func (ns *Namespace) reparent(in *inode, parent uint64) *inode {
	changed := *in
	changed.ctime, changed.changed = ns.time, ns.index
	if in.isDir() {
		changed.parent = parent
	}
	ns.putInode(&changed)
	return &changed
}

// exchange swaps the inodes of two names (RENAME_EXCHANGE).
func (ns *Namespace) exchange(by *storepb.Caller, op *storepb.Rename, a, b *entry) *storepb.Result {
	inA, foundA := ns.inodes.Get(a.ino)
	inB, foundB := ns.inodes.Get(b.ino)
	if !foundA || !foundB {
		return fail(storepb.Code_NOT_FOUND)
	}
	if a.ino == b.ino {
		return ok()
	}
	if code := ns.mayMove(inA, b.parent); code != storepb.Code_OK {
		return fail(code)
	}
	if code := ns.mayMove(inB, a.parent); code != storepb.Code_OK {
		return fail(code)
	}
	if refused := ns.refuseRename(by, op, a, b, inA, inB); refused != nil {
		return refused
	}
	if inB.isDir() {
		if refused := ns.refuseBelow(by, inB); refused != nil {
			return refused
		}
	}
	makerA, codeA := ns.makerOf(by, a)
	makerB, codeB := ns.makerOf(by, b)
	if codeA != storepb.Code_OK || codeB != storepb.Code_OK {
		return fail(storepb.Code_NEED_LINEAGE)
	}
	inA, inB = ns.reparent(inA, b.parent), ns.reparent(inB, a.parent)
	atA, atB := ns.succeed(by, a, b, inA, inB, makerA), ns.succeed(by, b, a, inB, inA, makerB)
	for _, moved := range []*inode{inA, inB} {
		if moved.isDir() {
			ns.judgeBelow(moved.ino)
		}
	}
	subdirs := 0 // directories that come to a's parent, less those that leave it
	if inB.isDir() {
		subdirs++
	}
	if inA.isDir() {
		subdirs--
	}
	ns.touchDir(a.parent, subdirs)
	ns.touchDir(b.parent, -subdirs)
	return &storepb.Result{Looks: append(ns.looksAt(atB), ns.looksAt(atA)...)}
}
