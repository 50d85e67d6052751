package fusefs

import (
	"time"

	"lockfs/raftstore/storepb"
)

// newFileAge is far more than the kernel takes from a creation to its question. It bounds how old an answer
// could be if a kernel did not ask.
const newFileAge = time.Second

// justCreated answers the attributes of what a thread has created in the open(2) that it is in the middle
// of. Before the open returns, the kernel judges permissions once more, and as it keeps no attributes it
// asks for them. Should that fail, the open would fail with a file left behind that nobody was told of. So
// this one request is answered with what the creation answered. The thread cannot ask anything else
// before, and the kernel does not keep what it is told, so nobody gets to see an old answer.
func (fs *fileSystem) justCreated(thread uint32, ino uint64) (attr *storepb.Attr, found bool) {
	attr, age, found := fs.newFiles.Take(thread, func(attr *storepb.Attr) bool { return attr.GetIno() == ino })
	return attr, found && age < newFileAge
}
