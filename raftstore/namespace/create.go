package namespace

import (
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) create(caller *storepb.Caller, op *storepb.Create) (*storepb.Result, *storepb.Undo) {
	if code := checkName(op.GetName()); code != storepb.Code_OK {
		return fail(code), nil
	}
	dir, code := ns.tree.directory(ids.Inode(op.GetParent()))
	if code != storepb.Code_OK {
		return fail(code), nil
	}
	if e, found := ns.tree.entry(ids.Inode(op.GetParent()), op.GetName()); found {
		return ns.openExisting(e, op), nil
	}
	if code := ns.mayCreate(op); code != storepb.Code_OK {
		return fail(code), nil
	}

	if refused := ns.refuseGrowth(0, smallBytes); refused != nil {
		return refused, nil
	}
	in := &inode{
		ino: ns.tree.nextIno, mode: op.GetMode(), nlink: 1, uid: caller.GetUid(), gid: caller.GetGid(), budgetUID: caller.GetBudgetUid(),
		atime: ns.time, mtime: ns.time, ctime: ns.time, btime: ns.time, version: ns.index, changed: ns.index,
		content: op.GetTarget(), host: intern(caller.GetHost()), unlisted: op.GetUnlisted(), evidence: op.GetFacts().GetEvidence(),
	}
	if in.isFile() {
		in.content = op.GetContent()
	}
	in.facts = ns.factsNow(op.GetFacts())
	made := &entry{parent: dir.ino, name: string(op.GetName()), ino: in.ino}
	if !in.unlisted {
		if made.creator, code = ns.creatorOf(caller, made); code != storepb.Code_OK {
			return fail(code), nil
		}
	}
	if refused := ns.tree.roomForName(caller, in, 1, in.bytes()+made.bytes()+saidBytes(op.GetFacts())); refused != nil {
		return refused, nil
	}
	if code := ns.tree.roomBelow(dir.ino, 1, in.bytes()+made.bytes()+saidBytes(op.GetFacts())); code != storepb.Code_OK {
		return refuseBelow(code), nil
	}
	ns.tree.nextIno++
	subdirs := 0
	if in.isDir() {
		in.nlink, in.parent, subdirs = 2, dir.ino, 1
	}
	if dir.mode&syscall.S_ISGID != 0 {
		in.gid = dir.gid
		if in.isDir() {
			in.mode |= syscall.S_ISGID
		} else if caller.GetSquashed() && in.mode&syscall.S_IXGRP != 0 {
			in.mode = withoutForeignGroup(caller, in.mode, in.gid)
		}
	}
	ns.tree.putInode(in)
	made.cookie = ns.tree.newCookie()
	exclusive := op.GetExclusive() || !in.isFile()
	made = ns.acquire(caller, made, in, acquisition{exclusive: exclusive, says: op.GetSays(), done: isFilled(op)})
	ns.touchDir(dir.ino, subdirs)

	var undo *storepb.Undo
	if exclusive { // else its caller cannot tell which process created it
		undo = undoOf(made)
	}
	return &storepb.Result{Attr: in.attr(), Created: true, Observations: ns.observations(made)}, undo
}

// openExisting answers a Create of a taken name. For open(O_CREAT) without O_EXCL, a regular file is a
// success. A symbolic link appeared after the look-up of the caller's kernel, so the kernel looks up again.
func (ns *Namespace) openExisting(e *entry, op *storepb.Create) *storepb.Result {
	in, found := ns.tree.inode(e.ino)
	switch {
	case !found:
		return fail(storepb.Code_NOT_FOUND)
	case op.GetExclusive() || op.GetMode()&syscall.S_IFMT != syscall.S_IFREG:
		return fail(storepb.Code_EXISTS)
	case in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case !in.isFile():
		return fail(storepb.Code_STALE)
	}
	return &storepb.Result{Attr: in.attr(), Observations: ns.observations(e)}
}

func (ns *Namespace) mayCreate(op *storepb.Create) storepb.Code {
	if code := mayFill(op); code != storepb.Code_OK {
		return code
	}
	isLink := false
	switch op.GetMode() & syscall.S_IFMT {
	case syscall.S_IFREG, syscall.S_IFIFO, syscall.S_IFSOCK:
	case syscall.S_IFDIR:
		if ns.tree.depth(ids.Inode(op.GetParent())) >= MaxDepth {
			return storepb.Code_NAME_TOO_LONG
		}
	case syscall.S_IFLNK:
		isLink = true
	default:
		return storepb.Code_NOT_PERMITTED
	}
	switch {
	case len(op.GetTarget()) > MaxTarget:
		return storepb.Code_NAME_TOO_LONG
	case isLink != (len(op.GetTarget()) > 0):
		return storepb.Code_INVALID
	case op.GetMode()&^(syscall.S_IFMT|modeBits) != 0:
		return storepb.Code_INVALID
	}
	return storepb.Code_OK
}

func isFilled(op *storepb.Create) bool {
	return len(op.GetContent()) > 0 || factsOf(op.GetFacts()) != nil
}

// mayFill allows content only for an exclusive creation: any other may find a file with content.
func mayFill(op *storepb.Create) storepb.Code {
	kind := op.GetMode() & syscall.S_IFMT
	mayHave := kind == syscall.S_IFREG && op.GetExclusive() || kind == syscall.S_IFLNK && len(op.GetContent()) == 0
	switch {
	case len(op.GetContent()) > MaxContent:
		return storepb.Code_FILE_TOO_BIG
	case isFilled(op) && !mayHave, !mayKeep(op.GetFacts()):
		return storepb.Code_INVALID
	}
	return storepb.Code_OK
}
