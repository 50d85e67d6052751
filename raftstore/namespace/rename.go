package namespace

import (
	"lockfs/raftstore/ids"
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
	moved, found := ns.tree.inode(source.ino)
	if !found {
		return fail(storepb.Code_NOT_FOUND), nil
	}
	if code := ns.tree.mayMove(moved, target.parent); code != storepb.Code_OK {
		return fail(code), nil
	}
	if refused := ns.refuseReevaluation(source, target, moved); refused != nil {
		return refused, nil
	}
	var replaced *inode
	if target.ino != 0 {
		if replaced, found = ns.tree.inode(target.ino); !found {
			return fail(storepb.Code_NOT_FOUND), nil
		}
		if code := ns.tree.mayReplace(moved, replaced); code != storepb.Code_OK {
			return fail(code), nil
		}
	}
	if refused := ns.refuseRename(cmd.GetCaller(), op, source, target, moved, replaced); refused != nil {
		return refused, nil
	}
	by, code := ns.creatorOf(cmd.GetCaller(), target)
	if code != storepb.Code_OK {
		return fail(code), nil
	}
	if code := ns.tree.roomToRename(source, target, moved, replaced); code != storepb.Code_OK {
		return fail(code), nil
	}
	var removed ids.Inode
	if replaced != nil {
		ns.emitFileRemoved(ids.Session(cmd.GetSession()), target, replaced, cmd.GetCaller())
		removed = ns.removeEntry(ids.Session(cmd.GetSession()), target, replaced)
		ns.tree.pinRemoved(ids.Session(cmd.GetSession()), removed, ids.Inode(op.GetPin()))
	}
	made := ns.move(cmd.GetCaller(), source, target, moved, replaced, &moveOptions{maker: by, exclusive: op.GetNoReplace(), says: op.GetSays(), reason: "it was renamed"})

	var undo *storepb.Undo
	if op.GetNoReplace() {
		undo = undoOf(made)
		undo.BackParent, undo.BackName = uint64(source.parent), op.GetName()
		undo.BackExclusive, undo.BackMaker = source.exclusive, source.creator.message()
		undo.BackSays, undo.BackMadeOn, undo.BackMadeBy = source.says.name, source.creatorHost.String(), source.creatorPID
	}
	return &storepb.Result{RemovedIno: uint64(removed), Observations: ns.observations(made)}, undo
}

// refuseRename asks the guards of both names: the source, with everything below it, and the replaced target.
func (ns *Namespace) refuseRename(
	by *storepb.Caller, op *storepb.Rename, source, target *entry, moved, replaced *inode,
) *storepb.Result {
	if refused := ns.refuseUnexpected(by, op, source, target, moved, replaced); refused != nil {
		return refused
	}
	if refused := ns.refuse(by, op.GetObservations(), source, moved, takeAway); refused != nil {
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
	return ns.refuse(by, op.GetObservations(), target, replaced, overwrite)
}

// renameSides returns the two names. The target's inode number is 0 if that name is free.
func (ns *Namespace) renameSides(op *storepb.Rename) (source, target *entry, code storepb.Code) {
	if op.GetNoReplace() && op.GetExchange() {
		return nil, nil, storepb.Code_INVALID
	}
	if code := checkName(op.GetNewName()); code != storepb.Code_OK {
		return nil, nil, code
	}
	for _, dir := range []uint64{op.GetParent(), op.GetNewParent()} {
		if _, code := ns.tree.directory(ids.Inode(dir)); code != storepb.Code_OK {
			return nil, nil, code
		}
	}
	source, found := ns.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	if !found {
		return nil, nil, storepb.Code_NOT_FOUND
	}
	target, taken := ns.tree.entry(ids.Inode(op.GetNewParent()), op.GetNewName())
	switch {
	case taken && op.GetNoReplace():
		return nil, nil, storepb.Code_EXISTS
	case !taken && op.GetExchange():
		return nil, nil, storepb.Code_NOT_FOUND
	case !taken:
		target = &entry{parent: ids.Inode(op.GetNewParent()), name: string(op.GetNewName())}
	}
	return source, target, storepb.Code_OK
}

// exchange swaps the inodes of two names (RENAME_EXCHANGE).
func (ns *Namespace) exchange(by *storepb.Caller, op *storepb.Rename, a, b *entry) *storepb.Result {
	inA, foundA := ns.tree.inode(a.ino)
	inB, foundB := ns.tree.inode(b.ino)
	if !foundA || !foundB {
		return fail(storepb.Code_NOT_FOUND)
	}
	if a.ino == b.ino {
		return ok()
	}
	if code := ns.tree.mayMove(inA, b.parent); code != storepb.Code_OK {
		return fail(code)
	}
	if code := ns.tree.mayMove(inB, a.parent); code != storepb.Code_OK {
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
	for _, refused := range []*storepb.Result{ns.refuseReevaluation(a, b, inA), ns.refuseReevaluation(b, a, inB)} {
		if refused != nil {
			return refused
		}
	}
	fromA, fromB := ns.pathForRules(a, inA), ns.pathForRules(b, inB)
	makerA, codeA := ns.creatorOf(by, a)
	makerB, codeB := ns.creatorOf(by, b)
	if codeA != storepb.Code_OK || codeB != storepb.Code_OK {
		return fail(storepb.Code_NEED_LINEAGE)
	}
	for _, code := range []storepb.Code{ns.tree.roomToRename(a, b, inA, inB), ns.tree.roomToRename(b, a, inB, inA)} {
		if code != storepb.Code_OK {
			return fail(code)
		}
	}
	inA, inB = ns.reparent(inA, b.parent), ns.reparent(inB, a.parent)
	atA, atB := ns.transferHolder(by, a, b, inA, inB, makerA), ns.transferHolder(by, b, a, inB, inA, makerB)
	if inA.isDir() {
		ns.reevaluateMoved(inA, fromA, ns.pathForRules(b, inA))
	}
	if inB.isDir() {
		ns.reevaluateMoved(inB, fromB, ns.pathForRules(a, inB))
	}
	subdirs := 0 // directories that enter a's parent, less those that leave it
	if inB.isDir() {
		subdirs++
	}
	if inA.isDir() {
		subdirs--
	}
	ns.touchDir(a.parent, subdirs)
	ns.touchDir(b.parent, -subdirs)
	return &storepb.Result{Observations: append(ns.observations(atB), ns.observations(atA)...)}
}
