package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// enter begins every operation with a name. Checks of the name and its caller belong here.
func (fs *fileSystem) enter(header *fuse.InHeader, parent ids.Inode, name string) (place, syscall.Errno) {
	if len(name) > namespace.MaxName {
		return place{}, syscall.ENAMETOOLONG
	}
	return place{caller: fuseattr.CallerOf(header), parent: parent, name: []byte(name)}, 0
}

// goesOn is called for a request outside an open(2) with a creation. The file may have changed since, so the
// mount and the Operator drop the kept answer to the creation.
func (fs *fileSystem) goesOn(thread uint32) {
	if thread != 0 {
		fs.calls.created.Drop(thread)
		fs.ops.GoesOn(thread)
	}
}
