package fusefs

import (
	"sync"

	"lockfs/fusefs/filelock"
	"lockfs/raftstore/ids"
)

// content is the content of a file at one version. Its data is shared and immutable.
type content struct {
	version uint64 // 0: unknown
	data    []byte
}

// inode is this mount's memory of a regular file in use.
type inode struct {
	ino ids.Inode

	// writing is held during a whole compare-and-set, so writers of one mount cause no conflicts among each
	// other.
	writing sync.Mutex

	mu   sync.Mutex
	seen content

	locks filelock.File

	// Guarded by the table's mutex.
	users     int  // open handles and operations under way, including Unpin
	pinned    bool // the cluster keeps the file without a name for this mount, or may do so
	kept      bool // the cluster has recorded the pin, or the mount is sending it
	unpinning bool // Unpin is under way
	pinAgain  bool // a pin was requested during Unpin
}

// last returns the newest content seen by this mount, which may be outdated.
func (in *inode) last() content {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.seen
}

// learn remembers content, unless a newer version is known: answers may overtake each other.
func (in *inode) learn(c content) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.version > in.seen.version {
		in.seen = c
	}
}

// inodeTable holds the inodes in use.
type inodeTable struct {
	begin func(*inode) // called for each new one

	mu    sync.Mutex
	byIno map[ids.Inode]*inode
}

func newInodeTable(begin func(*inode)) *inodeTable {
	return &inodeTable{begin: begin, byIno: make(map[ids.Inode]*inode)}
}

// use counts a user of an inode. Each call needs a call of [fileSystem.release].
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

// usePinned counts a user of an inode that the cluster keeps for this mount, in use before or not.
func (t *inodeTable) usePinned(ino ids.Inode) *inode {
	in := t.use(ino)
	t.mu.Lock()
	defer t.mu.Unlock()
	in.pinned, in.kept, in.pinAgain = true, true, in.unpinning
	return in
}

// keep is pin for an inode which the cluster may not keep yet. wanted is false if the cluster keeps it, or if
// it is not in use.
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

// notKept returns the inodes in use which may have lost their last name without notice.
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

// drop counts a user less, and reports whether to unpin the inode after its last user. Unpin is then a user
// itself, until the call of unpinned. So Pin and Unpin of one inode never overlap: the cluster could commit
// them in the wrong order.
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

// unpinned is called after Unpin. It reports whether to pin the inode again, as a separate user, because of
// an open or a pin meanwhile.
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

// get returns an inode in use.
func (t *inodeTable) get(ino ids.Inode) (in *inode, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found = t.byIno[ino]
	return in, found
}

// isUsed reports whether an inode has a user besides Unpin.
func (t *inodeTable) isUsed(ino ids.Inode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, found := t.byIno[ino]
	return found && (in.users > 1 || !in.unpinning)
}
