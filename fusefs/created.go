package fusefs

import (
	"sync"
	"time"

	"lockfs/raftstore/storepb"
)

// newFiles remembers, for each thread that is in the middle of an open(2), what that has just created.
// Before the open returns, the kernel judges permissions once more, and as it keeps no attributes it asks
// for them. Should that fail, the open would fail with a file left behind that nobody was told of. So
// this one request is answered with what the creation answered. The thread cannot ask anything else
// before, and the kernel does not keep what it is told, so nobody gets to see an old answer.
type newFiles struct {
	mu       sync.Mutex
	byThread map[uint32]newFile
}

type newFile struct {
	attr *storepb.Attr
	at   time.Time
}

// newFileAge is far more than the kernel takes between the two. It bounds how old an answer could be if
// a kernel did not ask.
const newFileAge = time.Second

func makeNewFiles() *newFiles { return &newFiles{byThread: make(map[uint32]newFile)} }

// note is called before the kernel hears of the creation. A thread that cannot be seen from here (0) is
// none.
func (f *newFiles) note(thread uint32, attr *storepb.Attr) {
	if thread == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byThread[thread] = newFile{attr, time.Now()}
}

// take answers what a thread has just created, once.
func (f *newFiles) take(thread uint32, ino uint64) (attr *storepb.Attr, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	made, found := f.byThread[thread]
	if !found || made.attr.GetIno() != ino {
		return nil, false
	}
	delete(f.byThread, thread)
	return made.attr, time.Since(made.at) < newFileAge
}
