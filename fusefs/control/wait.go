package control

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats"
	"lockfs/formats/lockfact"
	"lockfs/formats/pause"
	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// waitFile is for whoever wants to wait for a lock: a read returns when there is none under the name or it is stale, and says
// which. It is for those who may read what has the name.
type waitFile struct {
	parent ids.Inode
	name   string
}

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
	turn   chan struct{} // full while somebody waits, who alone uses what follows

	seen  []*storepb.Observation
	found snapshot // nil: it is still waited for
}

func (*waiting) flags() uint32 { return fuse.FOPEN_DIRECT_IO }

func (w *waiting) read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	select {
	case w.turn <- struct{}{}:
	case <-interrupted:
		return nil, syscall.EINTR
	}
	defer func() { <-w.turn }()
	ctx, end := thread.UntilInterrupted(interrupted)
	defer end()
	for w.found == nil {
		if errno := w.find(ctx); errno != 0 {
			return nil, errno
		}
		if w.found == nil && !w.await(ctx) {
			return nil, syscall.EINTR
		}
	}
	return w.found.read(interrupted, in)
}

// find finds out whether the lock is free or stale. That the cluster does not answer is no error to who is waiting already.
func (w *waiting) find(ctx context.Context) syscall.Errno {
	result, err := w.source.cluster.Query(ctx, &storepb.Query{Query: &storepb.Query_GetLock{
		GetLock: &storepb.GetLock{Parent: uint64(w.parent), Name: []byte(w.name)},
	}})
	if ctx.Err() != nil {
		return syscall.EINTR
	}
	result, errno := kernel.Outcome(result, err, w.source.logger)
	switch {
	case errno == syscall.ENOENT:
		w.found = isFree
	case errno == syscall.ETIMEDOUT && w.seen != nil:
		_ = pause.For(ctx, askAgainPause) // what awaits a change may be answered all the same
	case errno != 0:
		return errno
	case result.GetLocks()[0].GetState() == string(lockfact.Stale):
		w.found = snapshot(string(lockfact.Stale) + "\n")
	default:
		lock := result.GetLocks()[0]
		w.seen = []*storepb.Observation{{Parent: uint64(w.parent), Name: []byte(w.name), Token: lock.GetToken()}}
	}
	return 0
}

// askAgainPause is before the cluster is asked again that has failed to answer: a client that is closed fails at once.
const askAgainPause = 200 * time.Millisecond

// await returns when something may have changed. false: ctx has ended.
func (w *waiting) await(ctx context.Context) bool {
	query := &storepb.Query{Query: &storepb.Query_AwaitChange{AwaitChange: &storepb.AwaitChange{Seen: w.seen, OrStale: true}}}
	for ctx.Err() == nil {
		result, err := w.source.cluster.Query(ctx, query)
		if err == nil && result.GetCode() != storepb.Code_WAITING {
			return true
		}
		if err != nil {
			_ = pause.For(ctx, askAgainPause)
		}
	}
	return false
}
