package serve

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// wakePause is between two attempts to wake a thread for a stop.
const wakePause = 500 * time.Microsecond

// reader is a thread reading requests.
type reader struct {
	thread atomic.Int32 // 0: not waiting
}

func (r *reader) read(fd int, into []byte) (int, error) {
	r.thread.Store(int32(unix.Gettid())) // at worst another thread's, and the next attempt finds this one
	defer r.thread.Store(0)
	return unix.Read(fd, into)
}

// wake interrupts the read of a thread. The runtime itself uses and ignores the signal. The read begins
// again, and ends if the descriptor is non-blocking by then.
func (r *reader) wake() {
	if thread := r.thread.Load(); thread != 0 {
		_ = unix.Tgkill(os.Getpid(), int(thread), unix.SIGURG)
	}
}
