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
	// Grace is how long after a signal or the wait limit the front waits for the worker.
	Grace = 5 * time.Second
	// exitGrace is how long the front waits for the end of the worker after its exit code.
	exitGrace = 500 * time.Millisecond
	// killGrace limits the wait for processes killed by the front.
	killGrace = 10 * time.Second
)

// Exit codes of the front, as of timeout(1), and the base for signals as in a shell.
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
	name   string
	stderr io.Writer
	runs   bool

	worker  *exec.Cmd
	socket  *os.File
	signals chan os.Signal
	told    chan report
	code    chan int
	exited  chan struct{}

	running bool
	ran     bool
	keeps   bool           // the worker reports success and the lock stays
	first   syscall.Signal // first signal that should end the command; 0: none
	last    syscall.Signal // last signal passed on
	giveUp  <-chan time.Time
	limit   limit // of the wait, before the command runs
	late    <-chan time.Time
}

// report is a message of the worker, with its limit for waits.
type report struct {
	message message
	limit   limit
}

// limit is a time limit and the exit code after it.
type limit struct {
	time time.Duration
	code int
}

// Run runs this program in a worker and returns the exit code. runs reports whether the worker runs a
// command.
func Run(name string, runs bool) int {
	f := &front{
		name: name, stderr: os.Stderr, runs: runs,
		signals: make(chan os.Signal, len(ending)+len(others)),
		told:    make(chan report), code: make(chan int, 1), exited: make(chan struct{}),
	}
	signal.Notify(f.signals, append(ending, others...)...)
	if err := f.start(); err != nil {
		fmt.Fprintf(f.stderr, "%s: cannot start the worker process: %v\n", name, err)
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
		// Signals to the group of this process must reach the worker through this process only.
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

// relayed returns a writer through which the front copies the worker's output, so a hanging worker keeps
// no pipe open. The worker gets a terminal itself, and so does the output of a command.
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
	_ = f.worker.Process.Signal(syscall.SIGCONT) // a stopped process would not react
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
		if f.first != 0 { // the signal may be for the worker's next step
			f.giveUp = time.After(Grace)
		}
	}
}

// exit returns the exit code of the worker, after a short wait for its end.
func (f *front) exit(code int) int {
	select {
	case <-f.exited:
	case <-time.After(exitGrace):
	}
	return code
}

// workerExit ends like a worker without an exit code.
func (f *front) workerExit() int {
	if f.told != nil {
		for r := range f.told {
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
		fmt.Fprintf(f.stderr, "%s: the process that held the lock was killed (%v), and lockfs killed the command; another process may hold the lock now\n", f.name, s)
	case s == f.last || slices.Contains(ending, os.Signal(s)): // end like a process without a handler
		signal.Reset(s)
		runtime.LockOSThread()
		_ = syscall.Kill(os.Getpid(), s)
		time.Sleep(exitGrace)
	default:
		fmt.Fprintf(f.stderr, "%s: the worker process was killed: %v\n", f.name, s)
	}
	return exitSignal + int(s)
}

// abandon exits without the worker, which goes on in the background.
func (f *front) abandon() int {
	if f.keeps {
		fmt.Fprintf(f.stderr, "%s: the lock is acquired, but its file system does not respond\n", f.name)
		return 0
	}
	leaves := "a lock acquired later is released"
	if f.ran {
		leaves = "the lock is released when it responds again"
	}
	fmt.Fprintf(f.stderr, "%s: interrupted by signal: %v: the file system does not respond; %s\n", f.name, f.first, leaves)
	return exitSignal + int(f.first)
}

// abandonLate is abandon after the wait limit.
func (f *front) abandonLate() int {
	if f.keeps {
		return f.abandon()
	}
	fmt.Fprintf(f.stderr, "%s: the wait of %v is over, and the file system does not respond; a lock acquired later is released\n", f.name, f.limit.time)
	return f.limit.code
}

// killAll kills the processes of the command, which the kernel has made children of this one.
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

// Reap waits for dead adopted processes, except one with a goroutine waiting for it.
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
