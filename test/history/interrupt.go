package history

import (
	"os"
	"os/signal"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// interruptInterval is the time after which a signal is repeated, because it may have come before the call.
const interruptInterval = 20 * time.Millisecond

// interruptAfter interrupts the system call of the calling thread after some time, and repeatedly until stop.
// The thread must be locked to its goroutine.
func interruptAfter(limit time.Duration) (stop func()) {
	catchInterrupts()
	thread := unix.Gettid()
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for wait := limit; ; wait = interruptInterval {
			select {
			case <-time.After(wait):
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGUSR1)
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
	}
}

// catchInterrupts removes SA_RESTART from Go's handler, which would continue the calls.
var catchInterrupts = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1)
	// struct sigaction of the kernel: handler, flags, restorer, mask.
	var action struct{ handler, flags, restorer, mask uintptr }
	const restart = 0x10000000 // SA_RESTART
	here := uintptr(unsafe.Pointer(&action))
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), 0, here, unsafe.Sizeof(action.mask), 0, 0)
	action.flags &^= restart
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), here, 0, unsafe.Sizeof(action.mask), 0, 0)
})
