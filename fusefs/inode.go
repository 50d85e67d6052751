package fusefs

import (
	"sync"

	"lockfs/fusefs/filelock"
	"lockfs/raftstore/storepb"
)

// content is what a file held at one version. Its data is shared and never changed in place.
type content struct {
	version uint64 // 0: nothing is known
	data    []byte
}

// inode is what this mount remembers of a regular file while it is used here.
type inode struct {
	ino uint64

	// writing is held over a whole compare-and-set, so that the writers of one mount do not make each
	// other repeat theirs.
	writing sync.Mutex

	mu   sync.Mutex
	seen content

	locks filelock.File

	// Guarded by the table's mutex.
	users  int  // open handles and operations under way
	pinned bool // the namespace keeps it for us although it lost its last name
}

// last is the newest content that this mount has seen, which may be outdated.
func (in *inode) last() content {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.seen
}

// learn remembers content, unless an answer that overtook this one was newer: versions only rise.
func (in *inode) learn(c content) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.version > in.seen.version {
		in.seen = c
	}
}

// inodeTable holds the inodes in use.
type inodeTable struct {
	mu    sync.Mutex
	byIno map[uint64]*inode
}

func newInodeTable() *inodeTable {
	return &inodeTable{byIno: make(map[uint64]*inode)}
}

// use counts a user of an inode; each is matched by a call of [fileSystem.release].
func (t *inodeTable) use(ino uint64) *inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found := t.byIno[ino]
	if !found {
		in = &inode{ino: ino}
		t.byIno[ino] = in
	}
	in.users++
	return in
}

// pin counts a user of an inode and marks it as pinned, if it is in use.
func (t *inodeTable) pin(ino uint64) (in *inode, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in, found = t.byIno[ino]; found {
		in.users++
		in.pinned = true
	}
	return in, found
}

// drop counts a user less. It answers whether the last one left an inode that is to be unpinned.
func (t *inodeTable) drop(in *inode) (unpin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in.users--
	if in.users > 0 {
		return false
	}
	delete(t.byIno, in.ino)
	return in.pinned
}

// isUsed tells whether an inode is in use.
func (t *inodeTable) isUsed(ino uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.byIno[ino]
	return found
}

// toKeep answers the inode of a name that is about to be taken from it (see judgedAs), if it is open here. Should another one
// have the name by now, that is not kept.
func (fs *fileSystem) toKeep(judged *uint64) (ino uint64) {
	if judged == nil || !fs.inodes.isUsed(*judged) {
		return 0
	}
	return *judged
}

// mayHaveRemoved is for an operation that is to keep an inode. If it has no result it may have done so: then nothing is to be left
// of that when the inode is not in use any more.
func (fs *fileSystem) mayHaveRemoved(caller *storepb.Caller, result *storepb.Result, pinned uint64) {
	if result == nil {
		fs.removed(caller, pinned, pinned)
	}
}

// removed sees to it that an inode which lost its last name by an operation of this mount is kept while
// somebody has it open here. It comes before the kernel hears of the removal. ino 0 is none; what is pinned the operation
// has kept already.
func (fs *fileSystem) removed(caller *storepb.Caller, ino, pinned uint64) {
	if ino == 0 {
		return
	}
	in, found := fs.inodes.pin(ino)
	switch {
	case found:
		defer fs.release(caller, in) // as a user of its own, so that Unpin cannot overtake Pin
	case ino == pinned:
		fs.unpin(caller, ino) // closed meanwhile
	}
	if !found || ino == pinned {
		return
	}
	pin := &storepb.Op{Op: &storepb.Op_Pin{Pin: &storepb.Pin{Ino: ino}}}
	if _, errno := fs.mutate(nil, caller, pin); errno != 0 {
		fs.logger.Warn("open file that was removed may be lost", "ino", ino, "error", errno)
	}
}

// release ends one use of an inode, and with the last one whatever the namespace kept for this mount.
func (fs *fileSystem) release(caller *storepb.Caller, in *inode) {
	if fs.inodes.drop(in) {
		fs.unpin(caller, in.ino)
	}
}

func (fs *fileSystem) unpin(caller *storepb.Caller, ino uint64) {
	fs.insist(caller, &storepb.Op{Op: &storepb.Op_Unpin{Unpin: &storepb.Unpin{Ino: ino}}}, func() {})
}
