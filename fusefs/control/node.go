package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// node is what can be looked up in the control directory. Two that are equal are one node, and have
// one number; so nodes are values that can be compared.
type node interface {
	// attr answers new attributes, without the number.
	attr(s *source) (*storepb.Attr, syscall.Errno)
}

type dirNode interface {
	node
	lookup(s *source, name string) (node, *storepb.Attr, syscall.Errno)
	// list answers the entries whose offsets come after one, about as many as wanted. None: it has no more.
	list(s *source, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno)
}

type fileNode interface {
	node
	open(s *source, in *fuse.OpenIn) (handle, syscall.Errno)
}

// handle is one open file.
type handle interface {
	// read answers bytes that are never changed again. None: that was all.
	read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno)
	// flags says how the kernel is to treat it (FOPEN_*).
	flags() uint32
}

// snapshot is a file whose content is worked out when it is opened.
type snapshot []byte

func (s snapshot) read(_ <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	start := min(in.Offset, uint64(len(s)))
	end := min(start+uint64(in.Size), uint64(len(s)))
	return s[start:end], 0
}

func (s snapshot) flags() uint32 { return fuse.FOPEN_DIRECT_IO }
