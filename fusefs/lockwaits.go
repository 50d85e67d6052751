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

// errSuspended is why a wait ends when the mount is handed over: the request for the lock goes on waiting in the cluster, and whoever serves the
// mount next waits for it.
var errSuspended = errors.New("the mount is handed over")

// lockWaits are the waits for locks of a mount that is not served for a moment. Their requests keep their places in the cluster's queues.
type lockWaits struct {
	mu      sync.Mutex
	left    map[uint64]*lockWait // by the kernel's numbers
	serving context.Context      // ends when the mount is not served any more
	suspend context.CancelCauseFunc
}

// lockWait is a request of the kernel for a lock.
type lockWait struct {
	request *storepb.AwaitLock // nil: the cluster has not been asked yet
	asked   filelock.Request
	handle  uint64
}

// resume is called before the mount is served.
func (l *lockWaits) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving, l.suspend = context.WithCancelCause(context.Background())
}

// end has all waits end, and be put.
func (l *lockWaits) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspend(errSuspended)
}

// context ends with the serving of the mount, or a limit if that is not 0.
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

// take returns nil unless a request of the kernel is one that was put.
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

// savedWait is a lockWait for the process that serves the mount next.
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

// restoreWaits follows the files. The owners are known to ask for locks from then on: a close that comes first releases these too.
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
