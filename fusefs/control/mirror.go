package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// why, kv and wait mirror the tree of the mount. Everything is a file except directories with entries, so a
// lock taken by mkdir(1) has its own name. For a directory with entries, the name .lockfs in it is the file.
// Each name needs the permissions of the real one.

// view is a description of locks.
type view string

const (
	whyView  view = "why"
	kvView   view = "kv"
	waitView view = "wait"
)

func (v view) show(lock *storepb.Lock, s *source) snapshot {
	if v == whyView {
		return why(lock, s.cluster.Status().GetClusterTime())
	}
	return keyValues(lock)
}

// writeBits are the mode bits without effect on read-only files.
const writeBits = 0o222

// mirrorDir is a real directory. Its number of links has no meaning, as its names come from lookups.
type mirrorDir struct {
	view view
	ino  ids.Inode
}

func (d mirrorDir) attr(s *source) (*storepb.Attr, syscall.Errno) {
	attr, errno := s.attr(d.ino)
	return likeReal(attr, attr.GetMode()&^writeBits, 1), errno
}

func (d mirrorDir) lookup(s *source, name string) (node, *storepb.Attr, syscall.Errno) {
	attr, errno := s.lookup(d.ino, name)
	if errno == syscall.ENOENT && name == Name && d.ino != namespace.RootIno {
		return d.self(s)
	}
	if errno == syscall.ENOENT && d.view == waitView {
		return freeFile{}, s.fixed(fileMode), 0
	}
	if errno != 0 {
		return nil, nil, errno
	}
	if isDir(attr) {
		empty, errno := s.isEmpty(ids.Inode(attr.GetIno()))
		if errno != 0 {
			return nil, nil, errno
		}
		if !empty {
			return mirrorDir{d.view, ids.Inode(attr.GetIno())}, likeReal(attr, attr.GetMode()&^writeBits, 1), 0
		}
	}
	if d.view == waitView {
		return waitFile{d.ino, name}, likeReal(attr, tellingMode(attr), 1), 0
	}
	return mirrorFile{d.view, d.ino, name, ids.Inode(attr.GetIno())}, likeReal(attr, tellingMode(attr), 1), 0
}

// self returns the file for the directory itself, unless a real name hides it.
func (d mirrorDir) self(s *source) (node, *storepb.Attr, syscall.Errno) {
	result, errno := s.getLock(&storepb.GetLock{Ino: uint64(d.ino)})
	if errno != 0 {
		return nil, nil, errno
	}
	lock := result.GetLocks()[0]
	attr, parent, name := lock.GetAttr(), ids.Inode(lock.GetParent()), string(lock.GetName())
	if d.view == waitView {
		return waitFile{parent, name}, likeReal(attr, tellingMode(attr), 1), 0
	}
	return mirrorFile{d.view, parent, name, d.ino}, likeReal(attr, tellingMode(attr), 1), 0
}

func (d mirrorDir) list(s *source, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno) {
	entries, errno := s.list(d.ino, after, wanted)
	for i := range entries {
		switch {
		case entries[i].Name == "." || entries[i].Name == "..":
		case entries[i].Mode == syscall.S_IFDIR:
			entries[i].Mode = 0 // unknown: a file here if it is empty
		default:
			entries[i].Mode = syscall.S_IFREG
		}
	}
	return entries, errno
}

// mirrorFile describes the lock under a name. Another inode of this name has another mirrorFile: the kernel
// checks permissions on the mode of this one.
type mirrorFile struct {
	view   view
	parent ids.Inode
	name   string
	ino    ids.Inode
}

// attr is called for a missing real file only through an open handle.
func (f mirrorFile) attr(s *source) (*storepb.Attr, syscall.Errno) {
	attr, errno := s.attr(f.ino)
	if errno == syscall.ESTALE {
		return &storepb.Attr{Mode: syscall.S_IFREG}, 0
	}
	return likeReal(attr, tellingMode(attr), 1), errno
}

// open is an observation: the program may read "stale" and then remove this lock.
func (f mirrorFile) open(s *source, in *fuse.OpenIn) (handle, syscall.Errno) {
	result, errno := s.getLock(&storepb.GetLock{Parent: uint64(f.parent), Name: []byte(f.name)})
	if errno != 0 {
		return nil, errno
	}
	attr := result.GetAttr()
	if ids.Inode(attr.GetIno()) != f.ino && !fuseattr.MayOpen(attr, &in.InHeader, in.Flags) {
		return nil, syscall.ESTALE
	}
	s.observations.Saw(in.Caller, result.GetObservations(), lookguard.Read)
	return f.view.show(result.GetLocks()[0], s), 0
}
