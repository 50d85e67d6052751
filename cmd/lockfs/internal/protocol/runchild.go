package protocol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cluster/process"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
)

// cannotRun tells as a shell does why a command did not start.
func cannotRun(err error) *cli.ExitStatus {
	code := cli.ExitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = cli.ExitNotFound
	}
	var of *exec.Error
	var at *fs.PathError
	if errors.As(err, &of) && errors.As(of.Err, &at) { // the command is named twice
		err = &exec.Error{Name: of.Name, Err: at.Err}
	}
	return cli.Exit(code, fmt.Errorf("cannot run the command: %w", err))
}

// exitOf is the exit code of a command that has ended, as a shell tells it.
func exitOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.ExitSignal + int(status.Signal())
	}
	return state.ExitCode()
}

const tokenVariable = "LOCKFS_TOKEN"

// withToken leaves out the token of a lock that this process itself runs under: it would be taken for this lock's.
func withToken(environment []string, token string) []string {
	var with []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, tokenVariable+"=") {
			with = append(with, variable)
		}
	}
	if token != "" {
		with = append(with, tokenVariable+"="+token)
	}
	return with
}

var (
	// ending are the signals that tell a process to end.
	ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// others are those that are meant for the command besides.
	others = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// child is a command that runs under a lock.
type child struct {
	cmd      *exec.Cmd
	terminal bool // this process has a controlling terminal; then the command shares its process group
	adopts   bool // this process adopts the orphans among the processes that the command has started
	ending   chan os.Signal
	others   chan os.Signal
	done     chan struct{} // closed when the command has ended
}

// newChild prepares a command. The kernel kills it if this process is killed, which leaves it without a lock.
func newChild(cmd *cobra.Command, command []string) *child {
	c := &child{
		cmd:      exec.Command(command[0], command[1:]...),
		terminal: worker.HasTerminal(),
		adopts:   worker.Current() != nil,
		ending:   make(chan os.Signal, len(ending)),
		others:   make(chan os.Signal, len(others)),
		done:     make(chan struct{}),
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.setToken("")
	if c.adopts {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	// In a process group of its own a command could not read from the terminal, and Ctrl-C would not reach it. That standard
	// input is no terminal says nothing: ssh and sudo open /dev/tty.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !c.terminal, Pdeathsig: syscall.SIGKILL}
	return c
}

// setToken sets the lock's fencing token in the command's environment; empty: there is none.
func (c *child) setToken(token string) { c.cmd.Env = withToken(os.Environ(), token) }

// start starts it. The kernel takes the thread for the parent, so that must not end before the process.
func (c *child) start() error {
	runtime.LockOSThread()
	c.listen()
	worker.Current().Runs()
	if err := c.cmd.Start(); err != nil {
		worker.Current().Ran()
		c.stopListening()
		return err
	}
	if c.adopts {
		go c.reap()
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	return nil
}

// reap waits for adopted processes, or they would stay as zombies until this process ends.
func (c *child) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
			worker.Reap(c.cmd.Process.Pid)
		case <-c.done:
			return
		}
	}
}

// listen keeps signals for the command. They do not end this process any more.
func (c *child) listen() {
	c.listenForEnd()
	signal.Notify(c.others, others...)
}

// listenForEnd does so with those only that tell a process to end.
func (c *child) listenForEnd() { signal.Notify(c.ending, ending...) }

// isTold tells whether such a signal has come that was not handed on.
func (c *child) isTold() bool { return len(c.ending) > 0 }

func (c *child) stopListening() {
	signal.Stop(c.ending)
	signal.Stop(c.others)
}

// errOrphaned is the end of the process that the caller started, by SIGKILL.
var errOrphaned = errors.New("lockfs was killed")

// await passes signals on until the command has ended, stop says why it should, or the front of this process is gone.
func (c *child) await(stop <-chan error) (*os.ProcessState, error) {
	for {
		select {
		case <-c.done:
			return c.cmd.ProcessState, nil
		case err := <-stop:
			return nil, err
		case <-worker.Current().Gone():
			return nil, errOrphaned
		case s := <-c.ending:
			c.passOn(s.(syscall.Signal))
			c.passOn(syscall.SIGCONT) // a stopped process would not notice
		case s := <-c.others:
			c.passOn(s.(syscall.Signal))
		}
	}
}

// passOn sends a signal to the process group of the command. If that is also the group of this process, it reaches the
// processes in it that the command has started; the terminal has sent its own signals to all of them already.
func (c *child) passOn(s syscall.Signal) {
	select {
	case <-c.done:
		return
	default:
	}
	if !c.terminal {
		_ = syscall.Kill(-c.cmd.Process.Pid, s)
		return
	}
	if s == syscall.SIGINT || s == syscall.SIGQUIT {
		return
	}
	own := syscall.Getpgrp()
	for _, pid := range c.processes() {
		if group, err := syscall.Getpgid(pid); err == nil && group == own {
			_ = syscall.Kill(pid, s)
		}
	}
}

// processes are the command and all that it has started, as far as this process knows them.
func (c *child) processes() []int {
	if c.adopts {
		return process.Descendants(os.Getpid())
	}
	return append(process.Descendants(c.cmd.Process.Pid), c.cmd.Process.Pid)
}

// signalAll sends a signal to the command and all that it has started, in any process group or session.
func (c *child) signalAll(s syscall.Signal) {
	if !c.terminal {
		_ = syscall.Kill(-c.cmd.Process.Pid, s)
	}
	for _, pid := range c.processes() {
		if group, err := syscall.Getpgid(pid); c.terminal || err == nil && group != c.cmd.Process.Pid {
			_ = syscall.Kill(pid, s)
		}
	}
}

const (
	// endInterval is between two looks whether the command's descendants are gone; nothing reports that.
	endInterval = 20 * time.Millisecond
	// killTime is how long killed processes have to end. In the kernel, a call on a file system that hangs delays it.
	killTime = 10 * time.Second
)

// end ends the command and all that it has started: SIGTERM, and after grace SIGKILL. It reports whether all of them have ended.
func (c *child) end(grace time.Duration) bool {
	c.signalAll(syscall.SIGTERM)
	c.signalAll(syscall.SIGCONT)
	if c.goneWithin(grace, func() {}) {
		return true
	}
	return c.goneWithin(killTime, func() { c.signalAll(syscall.SIGKILL) })
}

// goneWithin waits for the end of the command and all that it has started, and calls each before every look.
func (c *child) goneWithin(limit time.Duration, each func()) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(endInterval) {
		each()
		if c.adopts {
			worker.Reap(c.cmd.Process.Pid)
		}
		if c.gone() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// gone reports whether the command and all that it has started have ended.
func (c *child) gone() bool {
	select {
	case <-c.done:
		return (c.terminal || syscall.Kill(-c.cmd.Process.Pid, 0) != nil) && (!c.adopts || len(c.processes()) == 0)
	default:
		return false
	}
}
