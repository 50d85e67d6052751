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
	facts   *facts       // what the content or the target says; nil if it is of no format
	gone    *staleness   // how it is known that the process of the facts is gone; nil: it is not
	host    sharedString // that created it, or wrote to it last; facts have the same string

	budgetUID uint32 // user that it counts for, if the owner's uid is subordinate to that user's; 0: the owner

	reserve sharedString // host with the part of the common reserve that it uses; empty: none

	unlisted     bool     // bookkeeping of lockfs itself, and no lock
	kernelLocked bool     // it has or had an advisory lock, or a request for one, that counts: see countsAsLock
	otherLocked  bool     // it has or had one that does not count
	evidence     []string // pieces of evidence that a content of no format, or a target, is a lock's
	shared       bool     // several hosts append to it, as to a log
	manyNames    bool     // it had more names than a lock may have, and is data for good
}

// payer returns the user that the inode counts for.
func (in *inode) payer() uint32 { return cmp.Or(in.budgetUID, in.uid) }

func (in *inode) isDir() bool { return in.mode&syscall.S_IFMT == syscall.S_IFDIR }

func (in *inode) isFile() bool { return in.mode&syscall.S_IFMT == syscall.S_IFREG }

// dirSize is what a directory's st_size says, whatever it holds.
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

// goneStill is what is known of the process of new content: it is gone if it was that of the old content,
// and that is gone.
func (in *inode) goneStill(says *facts) *staleness {
	if in.gone == nil || says == nil || says.process == nil ||
		says.Host != in.facts.Host || says.process.processID != in.facts.process.processID {
		return nil
	}
	return in.gone
}

// heldBy is the inode's place in the index of what processes hold; ok is false if it has none, as when the
// process is known to be gone or nobody can take the file for a lock any more.
func (in *inode) heldBy() (h held, ok bool) {
	if in.nlink == 0 || in.facts == nil || in.facts.process == nil || in.gone != nil || in.kernelLocked {
		return held{}, false
	}
	return held{in.facts, in.ino}, true
}
