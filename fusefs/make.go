package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Mknod makes regular files, fifos and sockets. The namespace keeps only the names of the latter two: their
// data stays on one host. Mknod returns EPERM for devices.
func (fs *fileSystem) Mknod(
	interrupted <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("mknod", time.Now(), &code)
	return fs.makeNode(interrupted, &in.InHeader, name, &storepb.Create{Mode: in.Mode}, out)
}

func (fs *fileSystem) Mkdir(
	interrupted <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("mkdir", time.Now(), &code)
	mode := syscall.S_IFDIR | in.Mode&fuseattr.PermissionBits
	return fs.makeNode(interrupted, &in.InHeader, name, &storepb.Create{Mode: mode}, out)
}

func (fs *fileSystem) Symlink(
	interrupted <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("symlink", time.Now(), &code)
	create := &storepb.Create{Mode: syscall.S_IFLNK | 0o777, Target: []byte(target)}
	return fs.makeNode(interrupted, header, name, create, out)
}

// makeNode creates a name exclusively.
func (fs *fileSystem) makeNode(
	interrupted <-chan struct{}, header *fuse.InHeader, name string, create *storepb.Create, out *fuse.EntryOut,
) fuse.Status {
	at, errno := fs.enter(header, ids.Inode(header.NodeId), name)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	create.Parent, create.Name, create.Exclusive = uint64(at.parent), at.name, true
	how := lookguard.Made
	if create.GetMode()&syscall.S_IFMT == syscall.S_IFDIR {
		how = lookguard.MadeDirectory
	}
	note := func(result *storepb.Result) { fs.observations.Saw(header.Caller, result.GetObservations(), how) }
	result, errno := fs.create(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Create{Create: create}}, note, orphanreply.Entry(header))
	if errno == 0 {
		fuseattr.FillEntry(out, result.GetAttr())
	}
	return fuseattr.Status(errno)
}

func (fs *fileSystem) Link(
	interrupted <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut,
) (code fuse.Status) {
	defer fs.observed("link", time.Now(), &code)
	at, errno := fs.enter(&in.InHeader, ids.Inode(in.NodeId), name)
	if errno != 0 {
		return fuseattr.Status(errno)
	}
	note := func(result *storepb.Result) {
		fs.observations.Saw(in.Caller, result.GetObservations(), lookguard.Made)
	}
	result, errno := fs.create(interrupted, at.caller, &storepb.Op{Op: &storepb.Op_Link{
		Link: &storepb.Link{Ino: in.Oldnodeid, Parent: uint64(at.parent), Name: at.name},
	}}, note, orphanreply.Entry(&in.InHeader))
	if errno == 0 {
		fuseattr.FillEntry(out, result.GetAttr())
	}
	return fuseattr.Status(errno)
}
