package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/kernel"
	"lockfs/raftstore/storepb"
)

// Unlink removes a name of anything but a directory.
func (fs *fileSystem) Unlink(interrupted <-chan struct{}, header *fuse.InHeader, name string) (code fuse.Status) {
	defer fs.observed("unlink", time.Now(), &code)
	return fs.removeName(interrupted, header, name, false)
}

// Rmdir removes an empty directory.
func (fs *fileSystem) Rmdir(interrupted <-chan struct{}, header *fuse.InHeader, name string) (code fuse.Status) {
	defer fs.observed("rmdir", time.Now(), &code)
	return fs.removeName(interrupted, header, name, true)
}

func (fs *fileSystem) removeName(interrupted <-chan struct{}, header *fuse.InHeader, name string, directory bool) fuse.Status {
	at, errno := fs.enter(header, header.NodeId, name)
	if errno != 0 {
		return kernel.Status(errno)
	}
	judged := fs.judgedAs(at)
	pin := fs.toKeep(judged)
	result, errno := fs.mutate(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Unlink{
		Unlink: &storepb.Unlink{
			Parent: at.parent, Name: at.name, Directory: directory, Looks: fs.seenBy(at), Judged: judged, Pin: pin,
		},
	}})
	fs.mayHaveRemoved(at.caller, result, pin)
	if errno == 0 {
		fs.tookAway(header.Caller, at)
		fs.removed(at.caller, result.GetRemovedIno(), pin)
	}
	return kernel.Status(fs.judge(at.caller, result, errno))
}

// Rename knows RENAME_NOREPLACE and RENAME_EXCHANGE; other flags are EINVAL.
func (fs *fileSystem) Rename(
	interrupted <-chan struct{}, in *fuse.RenameIn, oldName, newName string,
) (code fuse.Status) {
	defer fs.observed("rename", time.Now(), &code)
	if in.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return fuse.EINVAL
	}
	from, errno := fs.enter(&in.InHeader, in.NodeId, oldName)
	if errno != 0 {
		return kernel.Status(errno)
	}
	to, errno := fs.enter(&in.InHeader, in.Newdir, newName)
	if errno != 0 {
		return kernel.Status(errno)
	}
	replaced := fs.judgedAs(to)
	pin := fs.toKeep(replaced)
	result, errno := fs.create(interrupted, from.caller, &storepb.Op{Op: &storepb.Op_Rename{Rename: &storepb.Rename{
		Parent: from.parent, Name: from.name, NewParent: to.parent, NewName: to.name,
		NoReplace: in.Flags&unix.RENAME_NOREPLACE != 0,
		Exchange:  in.Flags&unix.RENAME_EXCHANGE != 0,
		Looks:     fs.seenBy(from, to),
		Judged:    fs.judgedAs(from),
		NewJudged: replaced,
		Pin:       pin,
	}}}, emptyAnswer(&in.InHeader))
	fs.mayHaveRemoved(from.caller, result, pin)
	if errno == 0 {
		fs.tookAway(in.Caller, from)
		fs.saw(in.Caller, result.GetLooks(), made)
		fs.removed(from.caller, result.GetRemovedIno(), pin)
	}
	return kernel.Status(fs.judge(from.caller, result, errno))
}
