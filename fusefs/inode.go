package fusefs

import (
	"sync"

	"lockfs/fusefs/filelock"
	"lockfs/raftstore/ids"
)

// content is what a file held at one version. Its data is shared and never changed in place.
type content struct {
	version uint64 // 0: nothing is known
	data    []byte
}

// inode is what this mount remembers of a regular file while it is used here.
type inode struct {
	ino ids.Inode

	// writing is held over a whole compare-and-set, so that the writers of one mount do not make each
	// other repeat theirs.
	writing sync.Mutex

	mu   sync.Mutex
	seen content

	locks filelock.File

	// Guarded by the table's mutex.
	users     int  // open handles and operations under way, Unpin included
	pinned    bool // the namespace keeps it for this mount although it lost its last name; or it may do so
	kept      bool // the cluster knows so, or is being told
	unpinning bool // Unpin is under way
	pinAgain  bool // the inode was to be kept while Unpin was under way
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
	begin func(*inode) // is called for each that comes into use

	mu    sync.Mutex
	byIno map[ids.Inode]*inode
}

func newInodeTable(begin func(*inode)) *inodeTable {
	return &inodeTable{begin: begin, byIno: make(map[ids.Inode]*inode)}
}

// use counts a user of an inode; each is matched by a call of [fileSystem.release].
func (t *inodeTable) use(ino ids.Inode) *inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found := t.byIno[ino]
	if !found {
		in = &inode{ino: ino}
		t.begin(in)
		t.byIno[ino] = in
	}
	in.users++
	return in
}

// pin counts a user of an inode and marks it as pinned, if it is in use.
func (t *inodeTable) pin(ino ids.Inode) (in *inode, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in, found = t.byIno[ino]; found {
		in.users++
		in.pinned, in.kept, in.pinAgain = true, true, in.unpinning
	}
	return in, found
}

// usePinned counts a user of an inode that the cluster keeps for this mount, whether it was in use or not.
func (t *inodeTable) usePinned(ino ids.Inode) *inode {
	in := t.use(ino)
	t.mu.Lock()
	defer t.mu.Unlock()
	in.pinned, in.kept, in.pinAgain = true, true, in.unpinning
	return in
}

// keep is pin for an inode of which the cluster may not know yet that it is to be kept. wanted is false if it does, or if the
// inode is not in use.
func (t *inodeTable) keep(ino ids.Inode) (in *inode, wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found := t.byIno[ino]
	if !found || in.kept {
		return nil, false
	}
	in.users++
	in.pinned, in.kept = true, true
	return in, true
}

// notKept lists the inodes in use that may have lost their last name without this mount knowing.
func (t *inodeTable) notKept() (all []ids.Inode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ino, in := range t.byIno {
		if !in.kept {
			all = append(all, ino)
		}
	}
	return all
}

// drop counts a user less. It reports whether that was the last user of an inode that is to be unpinned. Unpin is a user of its own then,
// until unpinned is called: Pin and Unpin of one inode are never under way at the same time, as the later one may be committed first.
func (t *inodeTable) drop(in *inode) (unpin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in.users--
	switch {
	case in.users > 0:
		return false
	case in.pinned:
		in.users, in.unpinning = 1, true
		return true
	}
	delete(t.byIno, in.ino)
	return false
}

// unpinned is for an inode of which Unpin is over. again reports whether it is to be pinned again, by a user of its own: it has been
// opened meanwhile, or it was to be kept.
func (t *inodeTable) unpinned(in *inode) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again = in.users > 1 || in.pinAgain
	in.unpinning, in.pinAgain = false, false
	in.pinned, in.kept = again, again
	if !again {
		in.users--
		delete(t.byIno, in.ino)
	}
	return again
}

// get returns an inode that is in use.
func (t *inodeTable) get(ino ids.Inode) (in *inode, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found = t.byIno[ino]
	return in, found
}

// isUsed reports whether an inode is in use, by more than Unpin.
func (t *inodeTable) isUsed(ino ids.Inode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found := t.byIno[ino]
	return found && (in.users > 1 || !in.unpinning)
}
