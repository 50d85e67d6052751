package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats"
	"lockfs/fusefs/kernel"
	"lockfs/raftstore/storepb"
)

// waitFile is for programs that wait for a lock: a read returns when there is none under the name or it is stale, and says
// which. It can be read by those who may read the file of that name.
type waitFile lockName

var isFree = snapshot(string(formats.Free) + "\n")

// freeFile is what all names are that nothing has. There is no end of these, so they are one node.
type freeFile struct{}

func (freeFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

// open follows a lookup, that found it free.
func (freeFile) open(*source, *fuse.OpenIn) (handle, syscall.Errno) { return isFree, 0 }

func (f waitFile) attr(s *source) (*storepb.Attr, syscall.Errno) {
	attr, errno := s.lookup(f.parent, f.name)
	switch errno {
	case 0:
		return likeReal(attr, tellingMode(attr), 1), 0
	case syscall.ENOENT: // it became free, or its directory is gone
		return freeFile{}.attr(s)
	}
	return nil, errno
}

func (f waitFile) open(s *source, in *fuse.OpenIn) (handle, syscall.Errno) {
	w := &waiting{waitFile: f, source: s, turn: make(chan struct{}, 1)}
	attr, errno := s.lookup(f.parent, f.name)
	switch {
	case errno == syscall.ENOENT:
		return isFree, 0
	case errno == 0 && !kernel.MayOpen(attr, &in.InHeader, in.Flags):
		return nil, syscall.ESTALE
	}
	return w, errno
}

// waiting is one open wait file.
type waiting struct {
	waitFile
	source *source
	turn   chan struct{} // full during a read, which alone uses the fields below

	isWaited bool     // a program has waited already
	found    snapshot // nil: it is still waited for
}

func (*waiting) flags() uint32 { return fuse.FOPEN_DIRECT_IO }

func (w *waiting) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	select {
	case w.turn <- struct{}{}:
	case <-interrupted:
		return nil, syscall.EINTR
	}
	defer func() { <-w.turn }()
	if w.found == nil {
		if errno := w.wait(interrupted); errno != 0 {
			return nil, errno
		}
	}
	return w.found.read(interrupted, in)
}

// wait returns once the lock is free or stale. A cluster that does not answer is no error to a program that waits already.
func (w *waiting) wait(interrupted <-chan struct{}) syscall.Errno {
	states := w.source.lockStates
	name, leave := states.enter(lockName(w.waitFile))
	defer leave()
	var held *stateQuestion // that was answered so last
	for {
		asked := states.ask(lockName(w.waitFile), name, held)
		if errno := waitFor(asked.done, interrupted); errno != 0 {
			return errno
		}
		switch {
		case asked.errno == syscall.ETIMEDOUT && w.isWaited:
			if errno := waitFor(pauseFor(askAgainPause), interrupted); errno != 0 {
				return errno
			}
			continue
		case asked.errno != 0:
			return asked.errno
		case asked.found != "":
			w.found = snapshot(asked.found + "\n")
			return 0
		}
		held, w.isWaited = asked, true
		changed, end := w.source.cluster.NameChanged(&storepb.Observation{Parent: uint64(w.parent), Name: []byte(w.name)}, held.index)
		errno := waitFor(changed, interrupted)
		end()
		if errno != 0 {
			return errno
		}
	}
}
