package control

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats"
	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/storepb"
)

// waitFile is for programs that wait for a lock: a read returns when the name is free or its lock is stale,
// and says which. It needs permission to read the file of that name.
type waitFile lockName

var isFree = snapshot(string(formats.Free) + "\n")

// freeFile is the one node for all names without an entry, which are unlimited in number.
type freeFile struct{}

func (freeFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

// open follows a lookup which found no entry.
func (freeFile) open(*source, *fuse.OpenIn) (handle, syscall.Errno) { return isFree, 0 }

func (f waitFile) attr(s *source) (*storepb.Attr, syscall.Errno) {
	attr, errno := s.lookup(f.parent, f.name)
	switch errno {
	case 0:
		return likeReal(attr, tellingMode(attr), 1), 0
	case syscall.ENOENT: // free by now, or its directory is gone
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
	case errno == 0 && !fuseattr.MayOpen(attr, &in.InHeader, in.Flags):
		return nil, syscall.ESTALE
	}
	return w, errno
}

// waiting is one open wait file.
type waiting struct {
	waitFile
	source *source
	turn   chan struct{} // full during a read, which alone uses the fields below

	isWaited bool     // a program has already waited
	found    snapshot // nil: the wait goes on
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

// wait waits until the lock is free or stale. During a wait, a cluster without an answer is no error.
func (w *waiting) wait(interrupted <-chan struct{}) syscall.Errno {
	states := w.source.lockStates
	name, leave := states.enter(lockName(w.waitFile))
	defer leave()
	var held *stateQuestion // the last query with this state
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
