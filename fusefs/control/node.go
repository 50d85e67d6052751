package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// node is an entry of the control directory. Equal nodes are one node with one number, so nodes are
// comparable values.
type node interface {
	// attr returns new attributes, without the number.
	attr(s *source) (*storepb.Attr, syscall.Errno)
}

type dirNode interface {
	node
	lookup(s *source, name string) (node, *storepb.Attr, syscall.Errno)
	// list returns the entries after an offset, about as many as wanted; none at the end.
	list(s *source, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno)
}

type fileNode interface {
	node
	open(s *source, in *fuse.OpenIn) (handle, syscall.Errno)
}

// handle is one open file.
type handle interface {
	// read returns immutable bytes; none at the end.
	read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno)
	// flags returns the kernel's flags for the file (FOPEN_*).
	flags() uint32
}

// snapshot is a file with its content computed at the opening.
type snapshot []byte

func (s snapshot) read(_ <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	start := min(in.Offset, uint64(len(s)))
	end := min(start+uint64(in.Size), uint64(len(s)))
	return s[start:end], 0
}

func (s snapshot) flags() uint32 { return fuse.FOPEN_DIRECT_IO }
