package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher reports when and how processes end. It holds a descriptor for each, and one waiting thread.
//
// A watcher knows the status only if it opened a descriptor before the process was gone. From Linux 6.15 on a
// pidfd has it, as soon as the parent has waited. Before, /proc shows it until the parent waits, and the
// process connector reports it (exits). A later watcher reports an unknown status.
type Watcher struct {
	gone  func(ID, End)
	epoll int
	stop  int // an eventfd
	done  chan struct{}

	// awaitWait is how long a zombie without a visible status is awaited.
	awaitWait time.Duration
	// othersFirst delays an unknown status: another watcher of this host may know it.
	othersFirst time.Duration
	delayed     []delayed // of the waiting goroutine

	byPidfd bool   // pidfds have the status
	exits   *exits // nil: not needed, or not available

	mu      sync.Mutex
	begun   bool // a process was watched
	closed  bool
	watched map[ID]*watched
	byFD    map[int32]*watched
	recent  recentEnds
}

// watched is a process with a descriptor.
type watched struct {
	id       ID
	fd       int
	isPidfd  bool // else it had ended, and fd is a readable eventfd
	end      End  // of an ended process
	reported bool // else only remembered
}

// delayed is a process with a delayed report.
type delayed struct {
	fd       int32
	deadline time.Time
}

const (
	// untilWaited is awaitWait. Parents usually wait at once; one which never waits must not delay staleness.
	untilWaited = 5 * time.Second
	// untilOthers is othersFirst. A mount which saw the end reports it at once.
	untilOthers = time.Second
	// untilExit is how long the connector's message may follow the pidfd: the kernel sends it right after.
	untilExit = 100 * time.Millisecond
)

// NewWatcher returns a watcher which calls gone once for each ended process, from one goroutine.
func NewWatcher(gone func(ID, End)) (*Watcher, error) {
	if _, err := Namespace(); err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	w := &Watcher{
		gone: gone, epoll: epoll, done: make(chan struct{}), awaitWait: untilWaited, othersFirst: untilOthers,
		watched: make(map[ID]*watched), byFD: make(map[int32]*watched),
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
	w.byPidfd = pidfdsTell()
	if !w.byPidfd {
		w.listen()
	}
	return w, nil
}

// listen uses the process connector if it serves this process.
func (w *Watcher) listen() {
	if w.exits = listenToExits(); w.exits != nil && w.add(w.exits.socket) != nil {
		w.exits.close()
		w.exits = nil
	}
}

// Prepare opens a process for a later [Watcher.Watch], which then knows how it ended.
func (w *Watcher) Prepare(id ID) error { return w.watch(id, false) }

// Watch calls gone when a process has ended, also if it has ended already. For a watched process it does
// nothing; after gone the process is not watched any more. After an error, for instance a lack of
// descriptors, it is not watched.
func (w *Watcher) Watch(id ID) error { return w.watch(id, true) }

func (w *Watcher) watch(id ID, reported bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return os.ErrClosed
	}
	if known, ok := w.watched[id]; ok {
		known.reported = known.reported || reported
		return nil
	}
	one := &watched{id: id, isPidfd: true, reported: reported}
	var err error
	one.fd, err = id.openToTheEnd()
	if errors.Is(err, errEnded) {
		if !reported {
			return nil
		}
		// A readable eventfd replaces its pidfd.
		one.isPidfd, one.end = false, w.recent.of(id)
		one.fd, err = unix.Eventfd(1, unix.EFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	w.watched[id], w.byFD[int32(one.fd)] = one, one
	if err := w.add(one.fd); err != nil {
		delete(w.watched, id)
		delete(w.byFD, int32(one.fd))
		_ = unix.Close(one.fd)
		return err
	}
	if w.exits != nil {
		w.exits.begin(id.PID)
	}
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
		n, err := unix.EpollWait(w.epoll, events, w.untilDeadline())
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			panic(os.NewSyscallError("epoll_wait", err)) // no external cause is possible
		}
		for _, event := range events[:n] {
			if event.Fd == int32(w.stop) {
				return
			}
			if w.exits != nil && event.Fd == int32(w.exits.socket) {
				w.exits.drain()
				continue
			}
			w.ended(event.Fd, event.Events&unix.EPOLLHUP != 0)
		}
		for _, late := range w.takeLate() {
			w.report(late.fd, w.look(late.fd))
		}
	}
}

// untilDeadline returns the milliseconds until the first deadline; -1: none.
func (w *Watcher) untilDeadline() int {
	first := -1
	for _, d := range w.delayed {
		if left := max(0, int((time.Until(d.deadline)+time.Millisecond-1)/time.Millisecond)); first < 0 || left < first {
			first = left
		}
	}
	return first
}

func (w *Watcher) takeLate() (late []delayed) {
	w.delayed = slices.DeleteFunc(w.delayed, func(d delayed) bool {
		isLate := time.Until(d.deadline) <= 0
		if isLate {
			late = append(late, d)
		}
		return isLate
	})
	return late
}

// ended handles the end of a descriptor's process. waited means: its parent has waited.
func (w *Watcher) ended(fd int32, waited bool) {
	end, delay := w.look(fd), time.Duration(0)
	change := unix.EPOLL_CTL_MOD
	if !end.Known {
		delay = w.delay(fd, waited)
	}
	if delay == untilExit { // the pidfd would be ready again at once
		change = unix.EPOLL_CTL_DEL
	}
	w.delayed = slices.DeleteFunc(w.delayed, func(d delayed) bool { return d.fd == fd })
	hangup := unix.EpollEvent{Fd: fd} // EPOLLHUP is implied
	if delay == 0 || unix.EpollCtl(w.epoll, change, int(fd), &hangup) != nil {
		w.report(fd, end)
		return
	}
	w.delayed = append(w.delayed, delayed{fd, time.Now().Add(delay)})
}

// look returns how a process ended, as far as known now.
func (w *Watcher) look(fd int32) End {
	w.mu.Lock()
	one := w.byFD[fd]
	w.mu.Unlock()
	switch {
	case one == nil:
		return End{}
	case !one.isPidfd:
		return one.end
	case w.exits != nil:
		if end := w.exits.of(one.id.PID); end.Known {
			return end
		}
	}
	if end := statusOfZombie(one.id); end.Known || !w.byPidfd {
		return end
	}
	end, _ := statusOf(one.fd)
	return end
}

// delay returns how long to wait for an unknown status: for the connector's message, or for the parent to
// wait.
func (w *Watcher) delay(fd int32, waited bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byFD[fd]
	switch {
	case one == nil:
		return 0
	case one.isPidfd && w.exits != nil:
		return untilExit
	case waited:
		return 0
	case !one.isPidfd:
		return w.othersFirst
	case w.byPidfd:
		return w.awaitWait
	}
	return 0
}

// report ends the watch of a process.
func (w *Watcher) report(fd int32, end End) {
	w.mu.Lock()
	one, found := w.byFD[fd]
	if found {
		delete(w.byFD, fd)
		delete(w.watched, one.id)
		w.recent.add(one.id, end)
		if w.exits != nil {
			w.exits.end(one.id.PID)
		}
		_ = unix.Close(int(fd))
	}
	w.mu.Unlock()
	if found && one.reported {
		w.gone(one.id, end)
	}
}

// Close stops the watcher. It does not call gone afterwards; gone itself must not call Close.
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
	if w.exits != nil {
		w.exits.close()
	}
	for fd := range w.byFD {
		_ = unix.Close(int(fd))
	}
	return errors.Join(unix.Close(w.stop), unix.Close(w.epoll))
}

// recentEnds stores the last ends, for locks committed afterwards.
type recentEnds struct {
	ends  map[ID]End
	order []ID // a ring
	next  int
}

const maxRecentEnds = 1024

func (r *recentEnds) of(id ID) End { return r.ends[id] }

func (r *recentEnds) add(id ID, end End) {
	if _, known := r.ends[id]; known || !end.Known {
		return
	}
	if r.ends == nil {
		r.ends = make(map[ID]End)
	}
	if len(r.order) < maxRecentEnds {
		r.order = append(r.order, id)
	} else {
		delete(r.ends, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecentEnds
	}
	r.ends[id] = end
}
