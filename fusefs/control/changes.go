package control

import (
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// changesFile is for programs that list locks again after changes. A read returns the number of the last
// change, as a line, at most one second after a change since the last read. The first read returns at once.
type changesFile struct{}

const changesName = "changes"

func (changesFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

func (changesFile) open(s *source, _ *fuse.OpenIn) (handle, syscall.Errno) {
	return &changeStream{source: s, turn: make(chan struct{}, 1)}, 0
}

// changeStream is one open changes file.
type changeStream struct {
	source *source
	turn   chan struct{} // full during a read, which alone uses the fields below

	seen  ids.Index // the last change read
	ahead []byte    // the unread rest of a line
}

func (*changeStream) flags() uint32 { return fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM }

func (s *changeStream) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	select {
	case s.turn <- struct{}{}:
	case <-interrupted:
		return nil, syscall.EINTR
	}
	defer func() { <-s.turn }()
	for len(s.ahead) == 0 {
		known, changed, end := s.source.cluster.StateAfter(s.seen)
		if known > s.seen {
			s.seen, s.ahead = known, fmt.Appendln(nil, known)
		} else if errno := waitFor(changed, interrupted); errno != 0 {
			end()
			return nil, errno
		}
		end()
	}
	data := s.ahead[:min(len(s.ahead), int(in.Size))]
	s.ahead = s.ahead[len(data):]
	return data, 0
}
