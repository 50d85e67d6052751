package control

import (
	"bytes"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/storepb"
)

// eventsFile returns events in lines of JSON ([lockjson.EventLine]), limited to the opener's permissions (see
// [storepb.Viewer]). Invisible events leave gaps in the numbers.
type eventsFile string

const (
	// newEvents has each event from the opening on. A read waits for the next one. A reader more than 10,000
	// events behind misses some.
	newEvents eventsFile = "events"
	// oldEvents has the stored events up to the opening.
	oldEvents eventsFile = "history"
)

func (eventsFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

// open uses O_NONBLOCK only as given here. The Go runtime sets it later on all files it can poll; it would
// then wait for a wakeup, which a poll of this file does not give.
func (f eventsFile) open(s *source, in *fuse.OpenIn) (handle, syscall.Errno) {
	stream := &eventStream{
		source: s, turn: make(chan struct{}, 1), viewer: fuseattr.ViewerOf(&in.InHeader), waits: in.Flags&syscall.O_NONBLOCK == 0,
	}
	result, errno := s.query(listEvents(&storepb.ListEvents{Limit: 1, Viewer: stream.viewer}))
	if errno != 0 {
		return nil, errno
	}
	if f == oldEvents {
		stream.ends, stream.last = true, result.GetLastEvent()
	} else {
		stream.seen = result.GetLastEvent()
	}
	return stream, 0
}

// eventStream is one open events file.
type eventStream struct {
	source *source
	viewer *storepb.Viewer // the opener, not the reader
	waits  bool
	ends   bool          // after the last one
	last   uint64        // the number of the last one
	turn   chan struct{} // full during a read, which alone uses the fields below

	seen  uint64 // number of the last fetched event
	ahead []byte // the unread rest of a line
}

// flags has no position: each byte is read once, and the next read continues in the line.
func (*eventStream) flags() uint32 { return fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM }

func (s *eventStream) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	select {
	case s.turn <- struct{}{}:
	case <-interrupted:
		return nil, syscall.EINTR
	}
	defer func() { <-s.turn }()
	for len(s.ahead) == 0 {
		if s.ends && s.seen >= s.last {
			return nil, 0
		}
		if errno := s.fetch(interrupted, int(in.Size)); errno != 0 {
			return nil, errno
		}
	}
	data := s.ahead[:min(len(s.ahead), int(in.Size))]
	s.ahead = bytes.Clone(s.ahead[len(data):])
	return data, 0
}

// fetch gets new events for one read, possibly none. Without a leader there are none.
func (s *eventStream) fetch(interrupted <-chan struct{}, size int) syscall.Errno {
	lines, upTo, errno := s.following(interrupted)
	switch {
	case errno == syscall.ETIMEDOUT && s.waits && !s.ends:
		return waitFor(pauseFor(askAgainPause), interrupted)
	case errno != 0:
		return errno
	}
	for _, line := range lines {
		s.ahead = append(s.ahead, line.text...)
		s.seen = line.number
		if len(s.ahead) >= size {
			return 0 // the next fetch repeats the rest, so an open file needs memory for one line
		}
	}
	s.seen = upTo
	if len(s.ahead) == 0 && !s.waits && !s.ends {
		return syscall.EAGAIN
	}
	return 0
}

// following returns the next events.
func (s *eventStream) following(interrupted <-chan struct{}) ([]eventLine, uint64, syscall.Errno) {
	feeds := s.source.events
	if s.waits && !s.ends {
		return feeds.next(s.viewer, s.seen, interrupted)
	}
	return feeds.page(s.viewer, s.seen)
}
