package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Unlink removes a name of anything but a directory.
func (fs *fileSystem) Unlink(interrupted <-chan struct{}, header *fuse.InHeader, name string) (code fuse.Status) {
	defer fs.observed("unlink", time.Now(), &code)
	return fs.removeName(interrupted, header, name, false)
}

func (fs *fileSystem) Rmdir(interrupted <-chan struct{}, header *fuse.InHeader, name string) (code fuse.Status) {
	defer fs.observed("rmdir", time.Now(), &code)
	return fs.removeName(interrupted, header, name, true)
}

func (fs *fileSystem) removeName(interrupted <-chan struct{}, header *fuse.InHeader, name string, directory bool) fuse.Status {
	at, errno := fs.enter(header, ids.Inode(header.NodeId), name)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	judged := fs.judgements.judgedAs(at)
	pin := fs.toKeep(judged)
	result, errno := fs.mutate(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Unlink{
		Unlink: &storepb.Unlink{
			Parent: uint64(at.parent), Name: at.name, Directory: directory, Observations: fs.observations.SeenBy(header.Pid, at.observed()), Judged: (*uint64)(judged), Pin: uint64(pin),
		},
	}})
	fs.mayHaveRemoved(at.caller, result, pin)
	if errno == 0 {
		fs.observations.TookAway(header.Caller, at.observed())
		fs.removed(at.caller, ids.Inode(result.GetRemovedIno()), pin)
	}
	return fuseattr.Status(fs.judgements.judge(at.caller, result, errno))
}

// Rename supports RENAME_NOREPLACE and RENAME_EXCHANGE, and returns EINVAL for other flags.
func (fs *fileSystem) Rename(
	interrupted <-chan struct{}, in *fuse.RenameIn, oldName, newName string,
) (code fuse.Status) {
	defer fs.observed("rename", time.Now(), &code)
	if in.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return fuse.EINVAL
	}
	from, errno := fs.enter(&in.InHeader, ids.Inode(in.NodeId), oldName)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	to, errno := fs.enter(&in.InHeader, ids.Inode(in.Newdir), newName)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	replaced := fs.judgements.judgedAs(to)
	pin := fs.toKeep(replaced)
	note := func(result *storepb.Result) {
		fs.observations.TookAway(in.Caller, from.observed())
		fs.observations.Saw(in.Caller, result.GetObservations(), lookguard.Made)
	}
	result, errno := fs.create(interrupted, from.caller, &storepb.Op{Op: &storepb.Op_Rename{Rename: &storepb.Rename{
		Parent: uint64(from.parent), Name: from.name, NewParent: uint64(to.parent), NewName: to.name,
		NoReplace:    in.Flags&unix.RENAME_NOREPLACE != 0,
		Exchange:     in.Flags&unix.RENAME_EXCHANGE != 0,
		Observations: fs.observations.SeenBy(in.Pid, from.observed(), to.observed()),
		Judged:       (*uint64)(fs.judgements.judgedAs(from)),
		NewJudged:    (*uint64)(replaced),
		Pin:          uint64(pin),
	}}}, note, orphanreply.Empty(&in.InHeader))
	fs.mayHaveRemoved(from.caller, result, pin)
	if errno == 0 {
		fs.removed(from.caller, ids.Inode(result.GetRemovedIno()), pin)
	}
	return fuseattr.Status(fs.judgements.judge(from.caller, result, errno))
}

// LookedUp records a lookup below force.
func (fs *fileSystem) LookedUp(thread uint32, parent ids.Inode, name string, ino ids.Inode) {
	fs.judgements.resolve(thread, parent, name, ino)
}

// RemoveForced removes a name despite its policy's guard and the caller's observations.
func (fs *fileSystem) RemoveForced(caller *storepb.Caller, parent ids.Inode, name string, directory bool) syscall.Errno {
	at := place{caller: caller, parent: parent, name: []byte(name)}
	result, errno := fs.mutate(nil, caller, &storepb.Op{Op: &storepb.Op_Unlink{
		Unlink: &storepb.Unlink{
			Parent: uint64(at.parent), Name: at.name, Directory: directory, Force: true, Judged: (*uint64)(fs.judgements.judgedAs(at)),
		},
	}})
	if errno == 0 {
		fs.removed(caller, ids.Inode(result.GetRemovedIno()), 0)
	}
	return fs.judgements.judge(caller, result, errno)
}
