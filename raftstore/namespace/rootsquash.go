package namespace

import (
	"slices"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Nobody is the uid and the gid of a squashed root.
const Nobody = 65534

// The kernel of a host lets its root do everything. If root of that host is squashed (Caller.squashed), this
// file checks its changes. It checks as a kernel does for an unprivileged user, in the same order, so
// programs see the errors of a local disk. The mode of an open file is unknown here: its owner may write to
// it, since the owner could change the permissions.

// squashedRoot checks the permissions of a squashed caller.
type squashedRoot struct{ *view }

// checkRootSquashed checks an operation of a squashed caller.
func (ns *Namespace) checkRootSquashed(by *storepb.Caller, op *storepb.Op) storepb.Code {
	s := squashedRoot{queryEngine{&ns.evaluator}.viewOf(&storepb.Viewer{Uid: by.GetUid(), Gid: by.GetGid()})}
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		return s.mayCreate(ids.Inode(op.Create.GetParent()), op.Create.GetName())
	case *storepb.Op_Link:
		return s.mayLink(op.Link)
	case *storepb.Op_Unlink:
		return s.mayUnlink(op.Unlink)
	case *storepb.Op_Rename:
		return s.mayRename(op.Rename)
	case *storepb.Op_SetAttr:
		return s.maySetAttr(op.SetAttr)
	case *storepb.Op_SetContent:
		return s.mayUse(ids.Inode(op.SetContent.GetIno()), MayWrite)
	case *storepb.Op_SetXattr:
		return s.maySetXattr(ids.Inode(op.SetXattr.GetIno()))
	case *storepb.Op_RemoveXattr:
		return s.maySetXattr(ids.Inode(op.RemoveXattr.GetIno()))
	case *storepb.Op_TakeLock:
		if op.TakeLock.GetType() != storepb.LockType_UNLOCK {
			return s.mayUse(ids.Inode(op.TakeLock.GetIno()), MayRead, MayWrite)
		}
	}
	return storepb.Code_OK
}

func (s squashedRoot) owns(in *inode) bool { return in.uid == s.viewer.GetUid() }

// finds reports whether the caller could reach an inode by one of its names. An inode without a name may be
// open.
func (s squashedRoot) finds(in *inode) bool {
	switch {
	case in.nlink == 0 || in.ino == RootIno:
		return true
	case in.isDir():
		return s.canSee(in.parent)
	}
	found := false
	s.tree.eachParent(in.ino, func(dir ids.Inode) bool {
		found = s.canSee(dir)
		return !found
	})
	return found
}

// walks reports whether the caller could reach a directory, or another error comes first.
func (s squashedRoot) walks(dir uint64) bool {
	_, code := s.tree.directory(ids.Inode(dir))
	return code != storepb.Code_OK || s.canSee(ids.Inode(dir))
}

// mayCreate checks the creation of a name. The operation itself reports a taken name.
func (s squashedRoot) mayCreate(parent ids.Inode, name []byte) storepb.Code {
	if !s.walks(uint64(parent)) {
		return storepb.Code_NO_ACCESS
	}
	if _, taken := s.tree.entry(parent, name); taken {
		return storepb.Code_OK
	}
	return s.mayChange(parent)
}

// mayChange checks whether names may be added to a directory and removed.
func (s squashedRoot) mayChange(parent ids.Inode) storepb.Code {
	dir, code := s.tree.directory(parent)
	if code == storepb.Code_OK && !s.permits(dir, MayWrite|MaySearch) {
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

// mayRemove checks the removal of a name in a directory the caller can reach.
func (s squashedRoot) mayRemove(e *entry) storepb.Code {
	if code := s.mayChange(e.parent); code != storepb.Code_OK {
		return code
	}
	dir, _ := s.tree.inode(e.parent)
	in, found := s.tree.inode(e.ino)
	if found && dir.mode&syscall.S_ISVTX != 0 && !s.owns(in) && !s.owns(dir) {
		return storepb.Code_NOT_PERMITTED
	}
	return storepb.Code_OK
}

func (s squashedRoot) mayUnlink(op *storepb.Unlink) storepb.Code {
	if !s.walks(op.GetParent()) {
		return storepb.Code_NO_ACCESS
	}
	e, found := s.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	if !found {
		return storepb.Code_OK
	}
	return s.mayRemove(e)
}

// mayLink also has the rule of fs.protected_hardlinks (proc_sys_fs(5)): a link needs write permission on the
// file.
func (s squashedRoot) mayLink(op *storepb.Link) storepb.Code {
	in, found := s.tree.inode(ids.Inode(op.GetIno()))
	if !found {
		return storepb.Code_OK
	}
	if !s.finds(in) || !s.walks(op.GetParent()) {
		return storepb.Code_NO_ACCESS
	}
	if _, taken := s.tree.entry(ids.Inode(op.GetParent()), op.GetName()); taken {
		return storepb.Code_OK
	}
	isSafe := in.isFile() && in.mode&syscall.S_ISUID == 0 && in.mode&asGroup != asGroup && s.permits(in, MayRead|MayWrite)
	if !isSafe && !s.owns(in) {
		return storepb.Code_NOT_PERMITTED
	}
	return s.mayChange(ids.Inode(op.GetParent()))
}

func (s squashedRoot) mayRename(op *storepb.Rename) storepb.Code {
	if !s.walks(op.GetParent()) || !s.walks(op.GetNewParent()) {
		return storepb.Code_NO_ACCESS
	}
	source, found := s.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	target, taken := s.tree.entry(ids.Inode(op.GetNewParent()), op.GetNewName())
	if !found || taken && (op.GetNoReplace() || target.ino == source.ino) || !taken && op.GetExchange() {
		return storepb.Code_OK // it does nothing
	}
	code := s.mayRemove(source)
	if code == storepb.Code_OK && taken {
		code = s.mayRemove(target)
	} else if code == storepb.Code_OK {
		code = s.mayChange(ids.Inode(op.GetNewParent()))
	}
	if code != storepb.Code_OK || op.GetParent() == op.GetNewParent() {
		return code
	}
	if taken && !op.GetExchange() && s.isDir(source) != s.isDir(target) {
		return storepb.Code_OK // the kernel reports that error first
	}
	if !s.mayLeave(source) || op.GetExchange() && !s.mayLeave(target) {
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

func (s squashedRoot) isDir(e *entry) bool {
	in, found := s.tree.inode(e.ino)
	return found && in.isDir()
}

// mayChangeDirectory reports whether an inode may get another parent, which changes a directory itself.
func (s squashedRoot) mayLeave(e *entry) bool {
	in, found := s.tree.inode(e.ino)
	return !found || !in.isDir() || s.permits(in, MayWrite)
}

// maySetAttr checks chmod(2), chown(2) and utimensat(2).
func (s squashedRoot) maySetAttr(op *storepb.SetAttr) storepb.Code {
	in, found := s.tree.inode(ids.Inode(op.GetIno()))
	if !found {
		return storepb.Code_OK
	}
	isTouch := op.GetAtimeNow() && op.GetMtimeNow()
	changesOwner := op.Uid != nil && op.GetUid() != in.uid
	changesGroup := op.Gid != nil && op.GetGid() != in.gid && op.GetGid() != s.viewer.GetGid()
	setsTime := !isTouch && (op.Atime != nil || op.Mtime != nil || op.GetAtimeNow() || op.GetMtimeNow())
	switch {
	case !s.finds(in):
		return storepb.Code_NO_ACCESS
	case changesOwner || changesGroup:
		return storepb.Code_NOT_PERMITTED
	case s.owns(in):
		return storepb.Code_OK
	case op.Mode != nil || setsTime || op.Uid != nil || op.Gid != nil:
		return storepb.Code_NOT_PERMITTED
	case isTouch && !s.permits(in, MayWrite):
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

// mayUse checks for one of some permissions on a file, or ownership.
func (s squashedRoot) mayUse(ino ids.Inode, oneOf ...uint32) storepb.Code {
	in, found := s.tree.inode(ino)
	if !found {
		return storepb.Code_OK
	}
	permitted := func(need uint32) bool { return s.permits(in, need) }
	if s.finds(in) && (s.owns(in) || slices.ContainsFunc(oneOf, permitted)) {
		return storepb.Code_OK
	}
	return storepb.Code_NO_ACCESS
}

// maySetXattr checks attributes of users (xattr(7)).
func (s squashedRoot) maySetXattr(ino ids.Inode) storepb.Code {
	in, found := s.tree.inode(ino)
	switch {
	case !found:
		return storepb.Code_OK
	case !s.finds(in):
		return storepb.Code_NO_ACCESS
	case !in.isFile() && !in.isDir(), in.isDir() && in.mode&syscall.S_ISVTX != 0 && !s.owns(in):
		return storepb.Code_NOT_PERMITTED
	case !s.permits(in, MayWrite):
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

// asGroup are the bits of a file that executes with its group.
const asGroup = syscall.S_ISGID | syscall.S_IXGRP

// withoutSetID returns the mode of a file after a write by a user without the right to set those bits. For
// other callers, the kernel and the mount do this.
func withoutSetID(by *storepb.Caller, mode, gid uint32) uint32 {
	if mode&asGroup == asGroup {
		mode &^= syscall.S_ISGID
	}
	return withoutForeignGroup(by, mode&^syscall.S_ISUID, gid)
}

// withoutForeignGroup clears the set-group-ID bit if the caller is no member of the group.
func withoutForeignGroup(by *storepb.Caller, mode, gid uint32) uint32 {
	if gid != by.GetGid() {
		mode &^= syscall.S_ISGID
	}
	return mode
}
