package fusefs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/fusefs/filelock"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// errSuspended ends a wait when the mount is handed over. The request keeps waiting in the cluster, and the
// next process waits for it.
var errSuspended = errors.New("the mount is handed over")

// lockWaits are the waits for locks while the mount is not served. Their requests keep their places in the
// cluster's queues.
type lockWaits struct {
	mu      sync.Mutex
	left    map[uint64]*lockWait // by the kernel's numbers
	serving context.Context      // ends with the serving of the mount
	suspend context.CancelCauseFunc
}

// lockWait is a request of the kernel for a lock.
type lockWait struct {
	request *storepb.AwaitLock // nil: not yet sent to the cluster
	asked   filelock.Request
	handle  uint64
}

// resume is called before the mount is served.
func (l *lockWaits) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving, l.suspend = context.WithCancelCause(context.Background())
}

// end ends all waits, whose requests call put.
func (l *lockWaits) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspend(errSuspended)
}

// context returns a context for the serving of the mount, with a limit unless it is 0.
func (l *lockWaits) context(limit time.Duration) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit == 0 {
		return l.serving, func() {}
	}
	return context.WithTimeout(l.serving, limit)
}

func (l *lockWaits) put(number uint64, in *inode, w *lockWait) {
	in.locks.Suspend(w.asked)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		l.left = make(map[uint64]*lockWait)
	}
	l.left[number] = w
}

// take returns the wait of a request after its put; else nil.
func (l *lockWaits) take(number uint64, in *inode) *lockWait {
	l.mu.Lock()
	w := l.left[number]
	delete(l.left, number)
	l.mu.Unlock()
	if w != nil {
		in.locks.Resume(w.asked)
	}
	return w
}

// savedWait is a lockWait for the next process.
type savedWait struct {
	Number  uint64
	Handle  uint64
	Request []byte // storepb.AwaitLock
}

func (l *lockWaits) save() (saved []savedWait, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, w := range l.left {
		request, err := proto.Marshal(w.request)
		if err != nil {
			return nil, err
		}
		saved = append(saved, savedWait{Number: number, Handle: w.handle, Request: request})
	}
	return saved, nil
}

// restoreWaits is called after the files are restored. From then on the owners count as asking for locks: an
// earlier close releases these too.
func (fs *fileSystem) restoreWaits(saved []savedWait, files map[uint64]*fileHandle) error {
	for _, s := range saved {
		w := &lockWait{request: new(storepb.AwaitLock), handle: s.Handle}
		file := files[s.Handle]
		if err := proto.Unmarshal(s.Request, w.request); err != nil {
			return err
		}
		if file == nil {
			return fmt.Errorf("a lock of inode %d is waited for through a file that is not open", w.request.GetIno())
		}
		asked, errno := file.inode.locks.Begin(&file.locks, filelock.Owner{Kind: w.request.GetKind(), Number: ids.Owner(w.request.GetOwner())})
		if errno != 0 {
			return errno
		}
		w.asked = asked
		fs.waits.put(s.Number, file.inode, w)
	}
	return nil
}
