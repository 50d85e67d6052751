package namespace

import (
	"cmp"
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// inode is never modified once it is in a tree.
type inode struct {
	ino     ids.Inode
	mode    uint32 // type and permission bits
	nlink   uint32
	uid     uint32
	gid     uint32
	parent  ids.Inode // of a directory
	atime   int64
	mtime   int64
	ctime   int64
	btime   int64
	version ids.Index // index of the command that set the content
	changed ids.Index // index of the command that set ctime
	content []byte    // of a file; target of a symbolic link
	xattrs  []*storepb.Xattr
	facts   *facts         // of the content or the target; nil: it is of no format
	gone    *staleness     // reason, if the process of the facts is known to be gone; nil: it is not
	host    internedString // that created it or last wrote to it; facts have the same string

	budgetUID uint32 // user that pays for it, if the owner's uid is subordinate to that user's; 0: the owner

	reserve internedString // host with the part of the common reserve it uses; empty: none

	unlisted     bool     // a file of lockfs itself, and no lock
	kernelLocked bool     // has or had an advisory lock or request that counts: see isLockOfHolder
	otherLocked  bool     // has or had one that does not count
	evidence     []string // evidence in a content of no format, or in a target
	shared       bool     // several hosts append to it, as to a log
	manyNames    bool     // it had more names than a lock may have, and is data for good
}

// payer returns the user for whom the inode counts.
func (in *inode) payer() uint32 { return cmp.Or(in.budgetUID, in.uid) }

func (in *inode) isDir() bool { return in.mode&syscall.S_IFMT == syscall.S_IFDIR }

func (in *inode) isFile() bool { return in.mode&syscall.S_IFMT == syscall.S_IFREG }

// dirSize is the st_size of every directory.
const dirSize = 4096

func (in *inode) attr() *storepb.Attr {
	size := uint64(len(in.content))
	if in.isDir() {
		size = dirSize
	}
	return &storepb.Attr{
		Ino: uint64(in.ino), Mode: in.mode, Nlink: in.nlink, Uid: in.uid, Gid: in.gid, Size: size,
		Atime: in.atime, Mtime: in.mtime, Ctime: in.ctime, Btime: in.btime, Version: uint64(in.version),
	}
}

// modeBits are the permission bits that chmod(2) can set.
const modeBits = 0o7777

// goneStill returns the staleness of new content's process: that of the old content if both are of one
// process.
func (in *inode) goneStill(says *facts) *staleness {
	if in.gone == nil || says == nil || says.process == nil ||
		says.Host != in.facts.Host || says.process.processID != in.facts.process.processID {
		return nil
	}
	return in.gone
}

// heldBy returns the inode's place in the index of locks by process. ok is false if it has none: the process
// is known to be gone, or the file cannot be a lock any more.
func (in *inode) heldBy() (h heldInode, ok bool) {
	if in.nlink == 0 || in.facts == nil || in.facts.process == nil || in.gone != nil || in.kernelLocked {
		return heldInode{}, false
	}
	return heldInode{in.facts, in.ino}, true
}
