package worker

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/process"
)

// variable marks a worker: PID:NAME with the parent of the front and the name of the program.
const variable = "LOCKFS_WORKER"

// frontFD is the worker's end of the socket.
const frontFD = 3

// comm is the process name of a worker. It differs from the program's, so killall(1) spares the worker,
// which ends its command.
const comm = "lockfs-worker"

// ErrNoFront is the error of a worker without its front, which was killed or gave up.
var ErrNoFront = errors.New("the process that started this command is gone")

// Worker is this process as a worker.
type Worker struct {
	Name   string // name of the program
	caller int    // parent of the front

	front *os.File
	gone  chan struct{} // closed when the front is gone
	kept  chan struct{} // receives the front's answer to mayKeep

	mu sync.Mutex // serializes messages
}

var current = sync.OnceValue(find)

// Current returns this process as a worker, or nil if it is none.
func Current() *Worker { return current() }

func find() *Worker {
	value, set := os.LookupEnv(variable)
	if !set {
		return nil
	}
	_ = os.Unsetenv(variable)
	_ = os.Unsetenv(process.MarksVariable)
	caller, name, _ := strings.Cut(value, ":")
	pid, err := strconv.Atoi(caller)
	kind, errSocket := unix.GetsockoptInt(frontFD, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || errSocket != nil || kind != unix.SOCK_STREAM {
		return nil // the variable is inherited
	}
	unix.CloseOnExec(frontFD)
	_ = unix.SetNonblock(frontFD, true) // for os.File
	_ = os.WriteFile("/proc/self/comm", []byte(comm), 0)
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a worker without its front still has to release a lock
	w := &Worker{
		Name: name, caller: pid, front: os.NewFile(frontFD, "front"),
		gone: make(chan struct{}), kept: make(chan struct{}, 1),
	}
	go w.listen()
	return w
}

func (w *Worker) listen() {
	defer close(w.gone)
	var one [1]byte
	for {
		if _, err := w.front.Read(one[:]); err != nil {
			return
		}
		if message(one[0]) == keep {
			w.kept <- struct{}{}
		}
	}
}

func (w *Worker) send(bytes ...byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.front.Write(bytes)
}

// Gone is closed when the front is gone. Without a front it is never closed.
func (w *Worker) Gone() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.gone
}

// IsOrphan reports whether the front is gone.
func (w *Worker) IsOrphan() bool {
	select {
	case <-w.Gone():
		return true
	default:
		return false
	}
}

// Keep asks the front whether a lock that was just acquired is still wanted. It returns [ErrNoFront] if the
// front is gone, because the caller has seen the command fail. After nil, the front waits for the exit code.
func (w *Worker) Keep() error {
	if w == nil {
		return nil
	}
	w.send(byte(mayKeep))
	select {
	case <-w.kept:
		return nil
	case <-w.gone:
		return ErrNoFront
	}
}

// Waits tells the front the time limit until the command runs or the process ends. [Grace] after the limit,
// the front exits with a code and without the worker.
func (w *Worker) Waits(limit time.Duration, code int) {
	if w != nil {
		w.send(binary.BigEndian.AppendUint64([]byte{byte(waits), byte(code)}, uint64(limit))...)
	}
}

// Runs tells the front about a running command and receives the signals.
func (w *Worker) Runs() {
	if w != nil {
		w.send(byte(running))
	}
}

// Ran tells the worker that the command has ended.
func (w *Worker) Ran() {
	if w != nil {
		w.send(byte(ended))
	}
}

// Exit ends the process. The front gets the exit code first, because the end may hang.
func (w *Worker) Exit(code int) {
	if w != nil {
		w.send(byte(exits), byte(code))
	}
	os.Exit(code)
}

// CallerPID returns the PID of the parent of this program; 0 in another PID namespace.
func CallerPID() int {
	if w := Current(); w != nil {
		return w.caller
	}
	return os.Getppid()
}

// environment returns the environment of a worker. Its child processes inherit the mark.
func environment(name string, runs bool) []string {
	with := append(os.Environ(), fmt.Sprintf("%s=%d:%s", variable, os.Getppid(), name))
	if runs {
		mark := rand.Text() + rand.Text()
		with = append(with, process.MarkVariable+"="+mark, process.MarksVariable+"="+mark)
	}
	return with
}

// HasTerminal reports whether this process has a controlling terminal.
func HasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = terminal.Close()
	return true
}

// pollInterval is the interval between checks for processes ending without notification.
const pollInterval = 5 * time.Millisecond
