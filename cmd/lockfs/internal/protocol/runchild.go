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
	terminal bool // it shares the terminal with this process, and its process group
	ending   chan os.Signal
	others   chan os.Signal
	done     chan struct{} // closed when it has ended
}

// newChild takes the signal that the command gets when this process ends without having ended it: nobody would
// look after its lock any more.
func newChild(cmd *cobra.Command, command []string, orphaned syscall.Signal) *child {
	c := &child{
		cmd:    exec.Command(command[0], command[1:]...),
		ending: make(chan os.Signal, len(ending)),
		others: make(chan os.Signal, len(others)),
		done:   make(chan struct{}),
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.setToken("")
	// In a group of its own a command could not read from the terminal.
	_, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
	if c.terminal = err == nil; c.terminal {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // what it starts stays below this process
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !c.terminal, Pdeathsig: orphaned}
	return c
}

// setToken sets the lock's fencing token in the command's environment; empty: there is none.
func (c *child) setToken(token string) { c.cmd.Env = withToken(os.Environ(), token) }

// start starts it. The kernel takes the thread for the parent, so that must not end before the process.
func (c *child) start() error {
	runtime.LockOSThread()
	c.listen()
	if err := c.cmd.Start(); err != nil {
		c.stopListening()
		return err
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	return nil
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

// await hands on signals until the command has ended or stop says why it should. One that tells to end and came when the command
// had ended is kept.
func (c *child) await(stop <-chan error) (*os.ProcessState, error) {
	var late os.Signal
	for {
		select {
		case <-c.done:
			if late != nil && !c.isTold() {
				c.ending <- late
			}
			return c.cmd.ProcessState, nil
		case err := <-stop:
			return nil, err
		case s := <-c.ending:
			if !c.handOn(s) {
				late = s
			}
		case s := <-c.others:
			c.handOn(s)
		}
	}
}

// handOn answers whether the command had not ended before. It leaves out what the terminal has sent to the whole group itself.
func (c *child) handOn(s os.Signal) bool {
	select {
	case <-c.done:
		return false
	default:
	}
	if c.terminal && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
		return true
	}
	err := c.signal(s.(syscall.Signal))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}

// signal reaches also what the command has started, if it has a group of its own.
func (c *child) signal(s syscall.Signal) error {
	if c.terminal {
		return c.cmd.Process.Signal(s)
	}
	return syscall.Kill(-c.cmd.Process.Pid, s)
}

// signalAll reaches what the command has started in any case. That there is nothing left is no error.
func (c *child) signalAll(s syscall.Signal) {
	if !c.terminal {
		_ = c.signal(s)
		return
	}
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, s)
	}
}

// descendants leaves out those that have ended or are about to.
func descendants(of int) (pids []int) {
	for _, pid := range process.Children(of) {
		if !process.Dying(pid) {
			pids = append(pids, pid)
		}
		pids = append(pids, descendants(pid)...)
	}
	return pids
}

// groupInterval is how often end looks whether the command's descendants are gone; nothing tells of that.
const groupInterval = 20 * time.Millisecond

// end ends the command and what it has started: TERM, and KILL for what is left after grace.
func (c *child) end(grace time.Duration) {
	c.signalAll(syscall.SIGTERM)
	c.signalAll(syscall.SIGCONT) // a stopped one would not notice
	timer := time.NewTimer(grace)
	defer timer.Stop()
	ticker := time.NewTicker(groupInterval)
	defer ticker.Stop()
	for !c.gone() {
		select {
		case <-ticker.C:
		case <-timer.C:
			c.signalAll(syscall.SIGKILL)
			<-c.done
			return
		}
	}
}

// gone tells whether the command is, and what it has started.
func (c *child) gone() bool {
	select {
	case <-c.done:
		if c.terminal {
			return len(descendants(os.Getpid())) == 0
		}
		return syscall.Kill(-c.cmd.Process.Pid, 0) != nil
	default:
		return false
	}
}
