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

// cannotRun returns the exit status for a command that did not start, with a shell's codes.
func cannotRun(err error) *cli.ExitStatus {
	code := cli.ExitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = cli.ExitNotFound
	}
	var of *exec.Error
	var at *fs.PathError
	if errors.As(err, &of) && errors.As(of.Err, &at) { // the message would name the command twice
		err = &exec.Error{Name: of.Name, Err: at.Err}
	}
	return cli.Exit(code, fmt.Errorf("cannot run the command: %w", err))
}

// exitOf returns the exit code of an ended command, as a shell does.
func exitOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.ExitSignal + int(status.Signal())
	}
	return state.ExitCode()
}

const tokenVariable = "LOCKFS_TOKEN"

// withToken sets the token in an environment. It removes an inherited one, which belongs to a lock around
// this process.
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
	// ending are the signals that end a process.
	ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// others are further signals for the command.
	others = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// child is a command that runs under a lock.
type child struct {
	cmd      *exec.Cmd
	terminal bool // this process has a controlling terminal; then the command shares its process group
	adopts   bool // this process adopts orphaned descendants of the command
	ending   chan os.Signal
	others   chan os.Signal
	done     chan struct{} // closed when the command has ended
}

// newChild prepares a command. If this process is killed, the kernel kills the command too, since it would
// run without its lock.
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
	// In its own process group, a command could not read from the terminal, and Ctrl-C would not reach it. A
	// standard input without a terminal proves nothing: ssh and sudo open /dev/tty.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !c.terminal, Pdeathsig: syscall.SIGKILL}
	return c
}

// setToken sets the fencing token in the command's environment; empty: there is none.
func (c *child) setToken(token string) { c.cmd.Env = withToken(os.Environ(), token) }

// start starts the command. The kernel takes the calling thread for the parent, so the thread must outlive
// the command.
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

// reap waits for adopted processes. Otherwise they would stay zombies until this process ends.
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

// listen collects signals for the command. They no longer end this process.
func (c *child) listen() {
	c.listenForEnd()
	signal.Notify(c.others, others...)
}

// listenForEnd does so for the signals in ending only.
func (c *child) listenForEnd() { signal.Notify(c.ending, ending...) }

// isTold reports whether such a signal has arrived and was not passed on.
func (c *child) isTold() bool { return len(c.ending) > 0 }

func (c *child) stopListening() {
	signal.Stop(c.ending)
	signal.Stop(c.others)
}

// errOrphaned reports the end of the process started by the caller, by SIGKILL.
var errOrphaned = errors.New("lockfs was killed")

// await passes signals on until the command has ended, stop has an error, or the front of this process is
// gone.
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

// passOn sends a signal to the process group of the command. In a group shared with this process, it reaches
// the command and its descendants only. It omits SIGINT and SIGQUIT there: the terminal sends them to the
// whole group.
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

// processes returns the pids of the command and of its descendants, as far as this process knows them.
func (c *child) processes() []int {
	if c.adopts {
		return process.Descendants(os.Getpid())
	}
	return append(process.Descendants(c.cmd.Process.Pid), c.cmd.Process.Pid)
}

// signalAll sends a signal to the command and all its descendants, in any process group or session.
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
	// endInterval is the polling interval for the end of the descendants, which nothing reports.
	endInterval = 20 * time.Millisecond
	// killTime limits the wait for killed processes. A call on a hanging file system delays their end.
	killTime = 10 * time.Second
)

// end ends the command and all its descendants: SIGTERM, and after grace SIGKILL. It reports whether all have
// ended.
func (c *child) end(grace time.Duration) bool {
	c.signalAll(syscall.SIGTERM)
	c.signalAll(syscall.SIGCONT)
	if c.goneWithin(grace, func() {}) {
		return true
	}
	return c.goneWithin(killTime, func() { c.signalAll(syscall.SIGKILL) })
}

// goneWithin waits for the end of the command and all its descendants. It calls each before every check.
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

// gone reports whether the command and all its descendants have ended.
func (c *child) gone() bool {
	select {
	case <-c.done:
		return (c.terminal || syscall.Kill(-c.cmd.Process.Pid, 0) != nil) && (!c.adopts || len(c.processes()) == 0)
	default:
		return false
	}
}
