package control

import (
	"bytes"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// lockList is one open locks file. Each read asks for the locks that fill it, in the order of inode number of
// the directory and name. So an open file needs memory only for the rest of one line.
//
// A program that reads it from begin to end sees each permanent lock exactly once, in its state at one of the
// reads. It may miss a lock that comes or goes meanwhile. A read at offset 0 starts again. A read at another
// earlier offset also does, up to that offset: after changes, it may begin in the middle of a line.
type lockList struct {
	source *source
	file   locksFile
	viewer *storepb.Viewer // the opener, not the reader
	turn   chan struct{}   // full during a read, which alone uses the fields below

	now    int64        // cluster time of the first line, to which all ages refer
	at     listPosition // after the last read
	before listPosition // before it, for a repeated read
}

// listPosition is a position in a list. Its rest is immutable.
type listPosition struct {
	offset uint64 // of the next byte
	rest   []byte // the unread rest of a line
	parent uint64 // the lock of the last line
	name   []byte
	ended  bool // at the end of the list
}

func (*lockList) flags() uint32 { return fuse.FOPEN_DIRECT_IO }

func (l *lockList) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	select {
	case l.turn <- struct{}{}:
	case <-interrupted:
		return nil, syscall.EINTR
	}
	defer func() { <-l.turn }()
	at := l.from(in.Offset)
	for at.offset < in.Offset {
		skipped, errno := l.next(&at, min(in.Offset-at.offset, mostListed))
		if errno != 0 {
			return nil, errno
		}
		if len(skipped) == 0 {
			return nil, 0
		}
		select {
		case <-interrupted:
			return nil, syscall.EINTR
		default:
		}
	}
	l.before = at
	data, errno := l.next(&at, min(uint64(in.Size), mostListed))
	if errno == 0 {
		l.at = at
	}
	return data, errno
}

// from returns the last known position at or before an offset.
func (l *lockList) from(offset uint64) listPosition {
	switch {
	case offset == 0:
		l.now = l.source.cluster.Status().GetClusterTime()
		return listPosition{}
	case offset < l.before.offset:
		return listPosition{}
	case offset < l.at.offset:
		return l.before
	}
	return l.at
}

// mostListed limits the bytes of a list produced at once: a read needs memory for them.
const mostListed = 64 << 10

// shortestLine is about the minimum length of a line, in bytes.
const shortestLine = 64

// next returns the next size bytes, or fewer at the end, and advances the position.
func (l *lockList) next(at *listPosition, size uint64) ([]byte, syscall.Errno) {
	data := bytes.Clone(at.rest[:min(size, uint64(len(at.rest)))])
	at.rest = at.rest[len(data):]
	for uint64(len(data)) < size && !at.ended {
		page, errno := l.page(at, (size-uint64(len(data)))/shortestLine+1)
		if errno != 0 {
			return nil, errno
		}
		for _, lock := range page {
			data = append(data, l.file.line(lock, l.now)...)
			at.parent, at.name = lock.GetParent(), lock.GetName()
			if uint64(len(data)) >= size {
				break // the next query repeats the rest of the page
			}
		}
		at.ended = len(page) == 0
	}
	if uint64(len(data)) > size {
		at.rest = bytes.Clone(data[size:])
		data = data[:size]
	}
	at.offset += uint64(len(data))
	return data, 0
}

func (l *lockList) page(at *listPosition, limit uint64) ([]*storepb.Lock, syscall.Errno) {
	result, errno := l.source.query(&storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: &storepb.ListLocks{
		Viewer: l.viewer, AfterParent: at.parent, AfterName: at.name, Limit: uint32(min(limit, 1<<20)),
	}}})
	return result.GetLocks(), errno
}
