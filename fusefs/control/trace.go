package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/trace"
	"lockfs/raftstore/storepb"
)

// traceFile tells root of calls in lines of JSON ([lockjson.Call]), of those that end while it is open. A read waits for the next one.
type traceFile struct{}

const traceName = "trace"

func (traceFile) attr(s *source) (*storepb.Attr, syscall.Errno) {
	return s.fixed(syscall.S_IFREG | 0o400), 0
}

func (traceFile) open(s *source, in *fuse.OpenIn) (handle, syscall.Errno) {
	if in.Uid != 0 {
		return nil, syscall.EACCES
	}
	return &traceStream{s.calls.Open(nil)}, 0
}

// traceStream is one open trace file.
type traceStream struct{ *trace.Reader }

func (*traceStream) flags() uint32 { return fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM }

func (s *traceStream) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	for {
		if data := s.Read(int(in.Size)); len(data) > 0 {
			return data, 0
		}
		select {
		case <-s.News():
		case <-interrupted:
			return nil, syscall.EINTR
		}
	}
}
