package fusefs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats"
	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// waitFile is for whoever wants to wait for a lock: a read returns when there is none under the name or it is stale, and says
// which. There is one for every name, taken or not; one that is taken is for those who may read what has it.
type waitFile struct {
	parent uint64
	name   string
}

func (f waitFile) attr(c *control) (*storepb.Attr, syscall.Errno) {
	attr, errno := c.lookupReal(f.parent, f.name)
	if errno != 0 { // it is free, or its directory is gone
		return c.fixed(controlFileMode), 0
	}
	return likeReal(attr, tellingMode(attr), 1), 0
}

func (f waitFile) open(c *control, in *fuse.OpenIn) (controlHandle, syscall.Errno) {
	w := &waiting{waitFile: f, files: c.files, turn: make(chan struct{}, 1)}
	attr, errno := c.lookupReal(f.parent, f.name)
	if errno == 0 && !mayOpen(attr, &in.InHeader, in.Flags) {
		return nil, syscall.ESTALE
	}
	return w, 0
}

// waiting is one open wait file.
type waiting struct {
	waitFile
	files *fileSystem
	turn  chan struct{} // full while somebody waits, who alone uses what follows

	seen  []*storepb.Look
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-interrupted:
			cancel()
		case <-ctx.Done():
		}
	}()
	for w.found == nil {
		if errno := w.look(); errno != 0 {
			return nil, errno
		}
		if w.found == nil && !w.await(ctx) {
			return nil, syscall.EINTR
		}
	}
	return w.found.read(interrupted, in)
}

// look finds out whether the lock is free or stale. That the cluster does not answer is no error to who is waiting already.
func (w *waiting) look() syscall.Errno {
	result, errno := w.files.getLock(anybody, &storepb.GetLock{Parent: w.parent, Name: []byte(w.name)})
	switch {
	case errno == syscall.ENOENT:
		w.found = snapshot(string(formats.Free) + "\n")
	case errno == syscall.ETIMEDOUT && w.seen != nil:
	case errno != 0:
		return errno
	case result.GetLocks()[0].GetState() == string(lockfact.Stale):
		w.found = snapshot(string(lockfact.Stale) + "\n")
	default:
		lock := result.GetLocks()[0]
		w.seen = []*storepb.Look{{Parent: w.parent, Name: []byte(w.name), Token: lock.GetToken()}}
	}
	return 0
}

// await returns when something may have changed. false: ctx has ended.
func (w *waiting) await(ctx context.Context) bool {
	query := &storepb.Query{Query: &storepb.Query_AwaitChange{AwaitChange: &storepb.AwaitChange{Seen: w.seen, OrStale: true}}}
	for ctx.Err() == nil {
		result, err := w.files.ops.Query(ctx, query)
		if err == nil && result.GetCode() != storepb.Code_WAITING {
			return true
		}
	}
	return false
}
