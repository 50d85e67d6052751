package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (t *tree) depth(dir ids.Inode) int {
	depth := 0
	for dir != RootIno {
		in, found := t.inode(dir)
		if !found {
			break
		}
		dir = in.parent
		depth++
	}
	return depth
}

// mayMove refuses to put a directory below itself or too deep.
func (t *tree) mayMove(moved *inode, newParent ids.Inode) storepb.Code {
	if !moved.isDir() || moved.parent == newParent {
		return storepb.Code_OK
	}
	for dir := newParent; dir != RootIno; {
		if dir == moved.ino {
			return storepb.Code_INVALID
		}
		in, found := t.inode(dir)
		if !found {
			break
		}
		dir = in.parent
	}
	if t.depth(newParent)+1+t.below[moved.ino].height() > MaxDepth {
		return storepb.Code_NAME_TOO_LONG
	}
	return storepb.Code_OK
}

func (t *tree) mayReplace(moved, replaced *inode) storepb.Code {
	switch {
	case moved.isDir() && !replaced.isDir():
		return storepb.Code_NOT_DIRECTORY
	case !moved.isDir() && replaced.isDir():
		return storepb.Code_IS_DIRECTORY
	case replaced.isDir() && t.hasEntries(replaced.ino):
		return storepb.Code_NOT_EMPTY
	}
	return storepb.Code_OK
}

// belowRoot reports whether a directory is below the root. It terminates whatever parents the directories
// have.
func (t *tree) belowRoot(dir *inode) bool {
	for range MaxDepth + 1 {
		if dir.ino == RootIno {
			return true
		}
		above, found := t.inode(dir.parent)
		if !found {
			return false
		}
		dir = above
	}
	return false
}
