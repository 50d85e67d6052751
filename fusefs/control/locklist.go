package control

import (
	"bytes"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// lockList is one open locks file. Each read asks for the locks that fill it, in the order of their directory's inode number and their name,
// so an open file needs memory for the rest of one line only, however many locks there are.
//
// A program that reads from the beginning to the end sees each lock that is there all the time exactly once, as it was at the moment of one of
// its reads; a lock that comes or goes meanwhile may be missing. A read at offset 0 begins anew. A read at an earlier offset too, and goes on from there:
// if locks have changed meanwhile, it may begin in the middle of a line.
type lockList struct {
	source *source
	file   locksFile
	viewer *storepb.Viewer // the process that opened the file, whichever reads
	turn   chan struct{}   // full during a read, which alone uses the fields below

	now    int64        // cluster time at which the first line was made: the ages of all lines are of that time
	at     listPosition // after the last read
	before listPosition // before it, for a program that reads the same again
}

// listPosition is how far a list was read. Its rest is never changed.
type listPosition struct {
	offset uint64 // of the next byte
	rest   []byte // of a line that a read ended in
	parent uint64 // the lock of the last line
	name   []byte
	ended  bool // that was the last lock
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

// from returns the last position that is known at or before an offset.
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

// mostListed is how much of a list is made at once, in bytes: a read needs memory for that.
const mostListed = 64 << 10

// shortestLine is about as long as a line is at least, in bytes.
const shortestLine = 64

// next takes so many bytes, and passes over them. Fewer: that is all.
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
				break // the rest of the page is asked for again
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
