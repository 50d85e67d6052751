package serve

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// wakePause is between two attempts to have a thread notice that it is not to read any more.
const wakePause = 500 * time.Microsecond

// reader is somebody who waits for a request.
type reader struct {
	thread atomic.Int32 // 0: it does not wait yet, or any more
}

func (r *reader) read(fd int, into []byte) (int, error) {
	r.thread.Store(int32(unix.Gettid())) // another one at worst, after which the next attempt finds this one
	defer r.thread.Store(0)
	return unix.Read(fd, into)
}

// wake has a thread look again whether it may wait: the runtime uses the signal itself, and takes it for nothing. A read that is interrupted
// by it begins anew, and ends if the descriptor does not block by then.
func (r *reader) wake() {
	if thread := r.thread.Load(); thread != 0 {
		_ = unix.Tgkill(os.Getpid(), int(thread), unix.SIGURG)
	}
}
