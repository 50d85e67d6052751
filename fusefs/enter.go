package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// enter is the way in of every operation that takes a name; what decides by name and caller whether an
// operation may go on belongs here.
func (fs *fileSystem) enter(header *fuse.InHeader, parent ids.Inode, name string) (place, syscall.Errno) {
	if len(name) > namespace.MaxName {
		return place{}, syscall.ENAMETOOLONG
	}
	return place{caller: kernel.CallerOf(header), parent: parent, name: []byte(name)}, 0
}

// goesOn is called when a request is not part of an open(2) that created something. What the Operator keeps
// of the answer to that, and this mount, must not be given to anybody any more, as the file may have changed since.
func (fs *fileSystem) goesOn(thread uint32) {
	if thread != 0 {
		fs.calls.created.Drop(thread)
		fs.ops.GoesOn(thread)
	}
}
