package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// place is a name in a directory, which need not exist, and who asks about it.
type place struct {
	caller *storepb.Caller
	parent uint64
	name   []byte
}

// enter is the way in of every operation that takes a name; what decides by name and caller whether an
// operation may go on belongs here.
func (fs *fileSystem) enter(header *fuse.InHeader, parent uint64, name string) (place, syscall.Errno) {
	fs.goesOn(header.Pid)
	if len(name) > namespace.MaxName {
		return place{}, syscall.ENAMETOOLONG
	}
	return place{caller: callerOf(header), parent: parent, name: []byte(name)}, 0
}
