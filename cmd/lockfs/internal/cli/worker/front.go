package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/process"
)

const (
	// Grace is how long after a signal, or after the time that the work may take, the front waits for the worker.
	Grace = 5 * time.Second
	// exitGrace is how long after its exit code the front waits for the end of the worker.
	exitGrace = 500 * time.Millisecond
	// killGrace bounds how long the front waits for processes that it has killed.
	killGrace = 10 * time.Second
)

// Exit codes of the front's own, as timeout(1) has them, and of a shell for a signal.
const (
	exitFailed = 125
	exitSignal = 128
)

var (
	ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	others = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// front is this process, beside its worker.
type front struct {
	name   string // for messages
	stderr io.Writer
	runs   bool // the worker runs a command

	worker  *exec.Cmd
	socket  *os.File
	signals chan os.Signal
	told    chan report
	code    chan int
	exited  chan struct{}

	running bool           // the command runs now
	ran     bool           // the command has ended
	keeps   bool           // the lock stays: the worker reports success
	first   syscall.Signal // the first signal that should end the command; 0: none
	last    syscall.Signal // the last signal that was passed on
	giveUp  <-chan time.Time
	limit   limit // of the work, before the command runs
	late    <-chan time.Time
}

// report is a message of the worker, with the limit of one that has a limit.
type report struct {
	message message
	limit   limit
}

// limit is how long the work may take, and the exit code if it takes longer.
type limit struct {
	time time.Duration
	code int
}

// Run does the work of this program in a worker and returns the exit code. runs tells whether that runs a command.
func Run(name string, runs bool) int {
	f := &front{
		name: name, stderr: os.Stderr, runs: runs,
		signals: make(chan os.Signal, len(ending)+len(others)),
		told:    make(chan report), code: make(chan int, 1), exited: make(chan struct{}),
	}
	signal.Notify(f.signals, append(ending, others...)...)
	if err := f.start(); err != nil {
		fmt.Fprintf(f.stderr, "%s: cannot start the process that does the work: %v\n", name, err)
		return exitFailed
	}
	return f.await()
}

func (f *front) start() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(pair[0], true)
	f.socket = os.NewFile(uintptr(pair[0]), "worker")
	end := os.NewFile(uintptr(pair[1]), "front")
	defer func() { _ = end.Close() }()
	f.worker = &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{comm}, os.Args[1:]...), Env: environment(filepath.Base(os.Args[0]), f.runs),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{end},
	}
	if !f.runs {
		f.worker.Stdout, f.worker.Stderr = relayed(os.Stdout), relayed(os.Stderr)
	}
	if f.runs {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // adopts the command if the worker is killed
		// Signals to the group of this process reach the worker through this process only.
		f.worker.SysProcAttr = &syscall.SysProcAttr{Setpgid: !HasTerminal()}
	}
	if err := f.worker.Start(); err != nil {
		return err
	}
	go f.listen()
	go func() {
		_ = f.worker.Wait()
		close(f.exited)
	}()
	return nil
}

// relayed has the front copy what the worker writes, so that a worker that hangs keeps no pipe open: what reads it would wait
// too. A terminal is handed to the worker itself, as is what a command writes to.
func relayed(file *os.File) io.Writer {
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err == nil {
		return file
	}
	return struct{ io.Writer }{file}
}

func (f *front) listen() {
	var one [1]byte
	for {
		if _, err := f.socket.Read(one[:]); err != nil {
			close(f.told)
			return
		}
		switch message(one[0]) {
		case exits:
			if _, err := f.socket.Read(one[:]); err == nil {
				f.code <- int(one[0])
			}
		case waits:
			var of [9]byte
			if _, err := io.ReadFull(f.socket, of[:]); err == nil {
				f.told <- report{waits, limit{time.Duration(binary.BigEndian.Uint64(of[1:])), int(of[0])}}
			}
		default:
			f.told <- report{message: message(one[0])}
		}
	}
}

func (f *front) await() int {
	for {
		select {
		case s := <-f.signals:
			f.passOn(s.(syscall.Signal))
		case r, open := <-f.told:
			if f.hear(r); !open {
				f.told = nil
			}
		case code := <-f.code:
			return f.exit(code)
		case <-f.exited:
			return f.workerExit()
		case <-f.giveUp:
			return f.abandon()
		case <-f.late:
			return f.abandonLate()
		}
	}
}

func (f *front) passOn(s syscall.Signal) {
	f.last = s
	_ = f.worker.Process.Signal(s)
	if s == syscall.SIGUSR1 || s == syscall.SIGUSR2 {
		return
	}
	_ = f.worker.Process.Signal(syscall.SIGCONT) // a stopped process would not notice
	if f.first == 0 {
		f.first = s
	}
	if !f.running && f.giveUp == nil {
		f.giveUp = time.After(Grace)
	}
}

func (f *front) hear(r report) {
	switch r.message {
	case waits:
		f.limit = r.limit
		f.late = time.After(f.limit.time + min(Grace, math.MaxInt64-f.limit.time))
	case mayKeep:
		f.keeps = true
		_, _ = f.socket.Write([]byte{byte(keep)})
	case running:
		f.running, f.giveUp, f.late, f.first = true, nil, nil, 0
	case ended:
		f.running, f.ran = false, true
		if f.first != 0 { // it may have been meant for what follows
			f.giveUp = time.After(Grace)
		}
	}
}

// exit ends with the exit code of the worker, which mostly ends too.
func (f *front) exit(code int) int {
	select {
	case <-f.exited:
	case <-time.After(exitGrace):
	}
	return code
}

// workerExit ends as a worker did that did not report its exit code before.
func (f *front) workerExit() int {
	if f.told != nil {
		for r := range f.told { // reported before the end
			f.hear(r)
		}
	}
	select {
	case code := <-f.code:
		return code
	default:
	}
	status, ok := f.worker.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return f.worker.ProcessState.ExitCode()
	}
	s := status.Signal()
	switch {
	case f.running:
		killAll()
		fmt.Fprintf(f.stderr, "%s: the process that held the lock was killed (%v); the command was killed too, and the lock may be held by others now\n", f.name, s)
	case s == f.last || slices.Contains(ending, os.Signal(s)): // as it ends a process by default, also this one
		signal.Reset(s)
		runtime.LockOSThread()
		_ = syscall.Kill(os.Getpid(), s)
		time.Sleep(exitGrace)
	default:
		fmt.Fprintf(f.stderr, "%s: the process that does the work was killed: %v\n", f.name, s)
	}
	return exitSignal + int(s)
}

// abandon ends without the worker, which goes on in the background.
func (f *front) abandon() int {
	if f.keeps {
		fmt.Fprintf(f.stderr, "%s: the lock is acquired, but its file system does not answer\n", f.name)
		return 0
	}
	leaves := "a lock that is acquired after this is given back"
	if f.ran {
		leaves = "the lock is not released until it does"
	}
	fmt.Fprintf(f.stderr, "%s: interrupted by signal: %v: the file system does not answer; %s\n", f.name, f.first, leaves)
	return exitSignal + int(f.first)
}

// abandonLate is abandon for work that takes longer than it may.
func (f *front) abandonLate() int {
	if f.keeps {
		return f.abandon()
	}
	fmt.Fprintf(f.stderr, "%s: the wait of %v is over, and the file system does not answer; a lock that is acquired after this is given back\n", f.name, f.limit.time)
	return f.limit.code
}

// killAll kills what the command has started. The kernel has made these processes children of this one.
func killAll() {
	for deadline := time.Now().Add(killGrace); time.Now().Before(deadline); time.Sleep(pollInterval) {
		processes := process.Descendants(os.Getpid())
		if len(processes) == 0 {
			return
		}
		for _, pid := range processes {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		Reap(0)
	}
}

// Reap takes note of the end of processes that this one has adopted, but not of one that another goroutine waits for.
func Reap(except int) {
	for _, pid := range process.Children(os.Getpid()) {
		if pid != except {
			for errors.Is(waitFor(pid), unix.EINTR) {
				continue
			}
		}
	}
}

func waitFor(pid int) error {
	_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err
}
