package namespace

import (
	"slices"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Nobody is the uid and the gid of root of a host whose root is squashed.
const Nobody = 65534

// The kernel of a host lets its root do everything. Where root of that host is nobody here (Caller.squashed), what it changes is judged by
// this: as a kernel judges for a user who is nobody, in the same order, so that programs see the errors that a local disk
// would give them. What a file was opened for is not known here: who owns it may write to it, as he could give himself the right to.

// squashed is what such a caller may do.
type squashed struct{ *view }

// mayNobody judges an operation of a squashed caller.
func (ns *Namespace) mayNobody(by *storepb.Caller, op *storepb.Op) storepb.Code {
	s := squashed{reader{&ns.judge}.viewOf(&storepb.Viewer{Uid: by.GetUid(), Gid: by.GetGid()})}
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		return s.mayMake(ids.Inode(op.Create.GetParent()), op.Create.GetName())
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

func (s squashed) owns(in *inode) bool { return in.uid == s.viewer.GetUid() }

// finds tells whether he could walk to an inode by one of its names. One without a name he may have open.
func (s squashed) finds(in *inode) bool {
	switch {
	case in.nlink == 0 || in.ino == RootIno:
		return true
	case in.isDir():
		return s.reaches(in.parent)
	}
	return slices.ContainsFunc(s.tree.namesOf(in.ino), func(e *entry) bool { return s.reaches(e.parent) })
}

// walks tells whether he could walk to a directory, or that is not what is wrong with it.
func (s squashed) walks(dir uint64) bool {
	_, code := s.tree.directory(ids.Inode(dir))
	return code != storepb.Code_OK || s.reaches(ids.Inode(dir))
}

// mayMake judges a new name. That it is taken is for the operation to say.
func (s squashed) mayMake(parent ids.Inode, name []byte) storepb.Code {
	if !s.walks(uint64(parent)) {
		return storepb.Code_NO_ACCESS
	}
	if _, taken := s.tree.entry(parent, name); taken {
		return storepb.Code_OK
	}
	return s.mayChange(parent)
}

// mayChange judges whether names may come to a directory and go.
func (s squashed) mayChange(parent ids.Inode) storepb.Code {
	dir, code := s.tree.directory(parent)
	if code == storepb.Code_OK && !s.permits(dir, MayWrite|MaySearch) {
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

// mayTakeAway judges whether a name may go, of a directory that he can walk to.
func (s squashed) mayTakeAway(e *entry) storepb.Code {
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

func (s squashed) mayUnlink(op *storepb.Unlink) storepb.Code {
	if !s.walks(op.GetParent()) {
		return storepb.Code_NO_ACCESS
	}
	e, found := s.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	if !found {
		return storepb.Code_OK
	}
	return s.mayTakeAway(e)
}

// mayLink has the rule of fs.protected_hardlinks (proc_sys_fs(5)) too: nobody links what he could not write to.
func (s squashed) mayLink(op *storepb.Link) storepb.Code {
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

func (s squashed) mayRename(op *storepb.Rename) storepb.Code {
	if !s.walks(op.GetParent()) || !s.walks(op.GetNewParent()) {
		return storepb.Code_NO_ACCESS
	}
	source, found := s.tree.entry(ids.Inode(op.GetParent()), op.GetName())
	target, taken := s.tree.entry(ids.Inode(op.GetNewParent()), op.GetNewName())
	if !found || taken && (op.GetNoReplace() || target.ino == source.ino) || !taken && op.GetExchange() {
		return storepb.Code_OK // it does nothing
	}
	code := s.mayTakeAway(source)
	if code == storepb.Code_OK && taken {
		code = s.mayTakeAway(target)
	} else if code == storepb.Code_OK {
		code = s.mayChange(ids.Inode(op.GetNewParent()))
	}
	if code != storepb.Code_OK || op.GetParent() == op.GetNewParent() {
		return code
	}
	if taken && !op.GetExchange() && s.isDir(source) != s.isDir(target) {
		return storepb.Code_OK // that is what is wrong first
	}
	if !s.mayLeave(source) || op.GetExchange() && !s.mayLeave(target) {
		return storepb.Code_NO_ACCESS
	}
	return storepb.Code_OK
}

func (s squashed) isDir(e *entry) bool {
	in, found := s.tree.inode(e.ino)
	return found && in.isDir()
}

// mayLeave tells whether what a name stands for may get another parent, which a directory notes in itself.
func (s squashed) mayLeave(e *entry) bool {
	in, found := s.tree.inode(e.ino)
	return !found || !in.isDir() || s.permits(in, MayWrite)
}

// maySetAttr judges chmod(2), chown(2) and utimensat(2).
func (s squashed) maySetAttr(op *storepb.SetAttr) storepb.Code {
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

// mayUse judges what needs one of some permissions on a file, or to own it.
func (s squashed) mayUse(ino ids.Inode, oneOf ...uint32) storepb.Code {
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

// maySetXattr judges attributes of users (xattr(7)).
func (s squashed) maySetXattr(ino ids.Inode) storepb.Code {
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

// asGroup lets who executes a file act for its group.
const asGroup = syscall.S_ISGID | syscall.S_IXGRP

// withoutSetID is the mode of a file that somebody has written to who could not set those bits. For others than a squashed root the
// kernel and the mount see to that.
func withoutSetID(by *storepb.Caller, mode, gid uint32) uint32 {
	if mode&asGroup == asGroup {
		mode &^= syscall.S_ISGID
	}
	return withoutForeignGroup(by, mode&^syscall.S_ISUID, gid)
}

// withoutForeignGroup is a mode without the bit that lets who executes a file act for its group, if the caller is no member of it.
func withoutForeignGroup(by *storepb.Caller, mode, gid uint32) uint32 {
	if gid != by.GetGid() {
		mode &^= syscall.S_ISGID
	}
	return mode
}
