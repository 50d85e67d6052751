package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// OpenDir asks the cluster only under root squash: a listing shows the entries at the time of the read.
func (fs *fileSystem) OpenDir(interrupted <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (code fuse.Status) {
	defer fs.observed("opendir", time.Now(), &code)
	if errno := fs.refuseRoot(interrupted, &in.InHeader, ids.Inode(in.NodeId), namespace.MayRead); errno != 0 {
		return fuseattr.Status(errno)
	}
	out.Fh = fs.dirs.Add(&dirHandle{ino: ids.Inode(in.NodeId)})
	return fuse.OK
}

// ReadDir returns the entries after the offset, a cookie. Cookies are stable while entries come and go, so a
// listing neither skips nor repeats a remaining entry.
func (fs *fileSystem) ReadDir(interrupted <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) (code fuse.Status) {
	defer fs.observed("readdir", time.Now(), &code)
	dir, found := fs.dirs.Get(in.Fh)
	if !found && in.Fh <= fs.crashed { // after a crash
		dir, found = &dirHandle{ino: ids.Inode(in.NodeId)}, true
		fs.dirs.AddAs(in.Fh, dir)
	}
	if !found {
		return fuse.EBADF
	}
	dir.mu.Lock()
	defer dir.mu.Unlock()
	if in.Offset == 0 {
		fs.observations.Listed(in.Caller, dir.ino)
	}
	if in.Offset == 0 || in.Offset != dir.at || len(dir.fetched) == 0 {
		if errno := fs.fetch(thread.NewRequest(interrupted, in.Pid), dir, in.Offset, in.Size/fuseattr.SmallestEntry+1); errno != 0 {
			return fuseattr.Status(errno)
		}
	}
	for len(dir.fetched) > 0 {
		entry := dir.fetched[0]
		if !out.AddDirEntry(fuse.DirEntry{
			Name: string(entry.GetName()), Ino: entry.GetIno(), Mode: entry.GetMode(), Off: entry.GetCookie(),
		}) {
			break
		}
		dir.at, dir.fetched = entry.GetCookie(), dir.fetched[1:]
	}
	return fuse.OK
}

// fetch gets the entries after a cookie. For a removed directory it returns ENOENT, which readdir(3) takes
// for the end.
func (fs *fileSystem) fetch(by thread.Request, dir *dirHandle, after uint64, limit uint32) syscall.Errno {
	dir.at, dir.fetched = after, nil
	result, errno := fs.query(by, &storepb.Query{Query: &storepb.Query_ReadDir{
		ReadDir: &storepb.ReadDir{Ino: uint64(dir.ino), After: after, Limit: limit},
	}})
	if errno == 0 {
		dir.fetched = result.GetEntries()
	}
	return errno
}

// ReleaseDir closes a directory handle.
func (fs *fileSystem) ReleaseDir(in *fuse.ReleaseIn) {
	code := fuse.OK
	defer fs.observed("releasedir", time.Now(), &code)
	fs.dirs.Remove(in.Fh)
}

// FsyncDir has nothing to do: names are committed before their system calls return.
func (fs *fileSystem) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
