package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Watcher tells when processes end. It holds a descriptor for each, and from the first one on a thread that waits.
type Watcher struct {
	gone  func(ID)
	epoll int
	stop  int // an eventfd
	done  chan struct{}

	mu      sync.Mutex
	begun   bool // something has been watched
	closed  bool
	watched map[ID]struct{}
	ids     map[int32]ID // by descriptor
}

// NewWatcher makes one that calls gone for each watched process when it has ended, from one goroutine.
func NewWatcher(gone func(ID)) (*Watcher, error) {
	if _, err := Namespace(); err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	w := &Watcher{
		gone: gone, epoll: epoll, done: make(chan struct{}),
		watched: make(map[ID]struct{}), ids: make(map[int32]ID),
	}
	if w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		_ = unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err := w.add(w.stop); err != nil {
		_ = unix.Close(w.stop)
		_ = unix.Close(epoll)
		return nil, err
	}
	return w, nil
}

// Watch has gone called when a process has ended, also if it has ended already. For a process that is being
// watched it does nothing; once gone has been called, it is not watched any more. When there is an error, for
// instance because there are no descriptors left, the process is not watched.
func (w *Watcher) Watch(id ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return os.ErrClosed
	}
	if _, ok := w.watched[id]; ok {
		return nil
	}
	fd, err := id.open()
	if errors.Is(err, errEnded) {
		// In the place of its pidfd comes something else that is readable at once.
		fd, err = unix.Eventfd(1, unix.EFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	if err := w.add(fd); err != nil {
		_ = unix.Close(fd)
		return err
	}
	w.watched[id] = struct{}{}
	w.ids[int32(fd)] = id
	if !w.begun {
		w.begun = true
		go w.run()
	}
	return nil
}

func (w *Watcher) add(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event))
}

func (w *Watcher) run() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			panic(os.NewSyscallError("epoll_wait", err)) // there is none that could come from outside
		}
		for _, event := range events[:n] {
			if event.Fd == int32(w.stop) {
				return
			}
			w.gone(w.take(event.Fd))
		}
	}
}

// take ends the watching of a process.
func (w *Watcher) take(fd int32) ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.ids[fd]
	delete(w.ids, fd)
	delete(w.watched, id)
	_ = unix.Close(int(fd))
	return id
}

// Close ends it. Once it returns, gone is not called any more; so gone itself must not close.
func (w *Watcher) Close() error {
	w.mu.Lock()
	closed, begun := w.closed, w.begun
	w.closed = true
	w.mu.Unlock()
	if closed {
		return os.ErrClosed
	}
	if begun {
		if _, err := unix.Write(w.stop, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
			return os.NewSyscallError("write", err)
		}
		<-w.done
	}
	for fd := range w.ids {
		_ = unix.Close(int(fd))
	}
	return errors.Join(unix.Close(w.stop), unix.Close(w.epoll))
}
