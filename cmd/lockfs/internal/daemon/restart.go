package daemon

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

const (
	// crashInterval is the interval in which too many crashes end a mount.
	crashInterval = 30 * time.Second
	// successorPause is the pause between attempts to start the next process.
	successorPause = time.Second
	// mostFailures is the maximum number of attempts.
	mostFailures = 10
)

// isUnattended reports whether the daemon has no supervisor.
func isUnattended() bool { return os.Getenv(cli.UnattendedVariable) != "" }

// isSupervised reports whether systemd or another supervisor restarts the daemon.
func isSupervised() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv(cli.SupervisedVariable) != ""
}

// leaving is the mount of a dead process in its guard, for the next process.
type leaving struct {
	command    []string // command line of the dead process
	connection *mountpoint.Connection
	journal    *os.File // may be nil
	estate     *os.File
	socket     *os.File // for the next process; may be nil
	told       bool     // a signal ended the dead process before its unmount
}

// succeed starts processes until one takes over the mount with its own guard, and reports whether one did.
// Programs wait meanwhile.
func (l *leaving) succeed() bool {
	for range mostFailures {
		err := l.start()
		if err == nil {
			return true
		}
		if l.told = errors.Is(err, errToldToEnd); l.told {
			return false
		}
		if goesOn, err := crashstate.MayGoOn(l.estate, hostinfo.BootTime(), crashInterval); err != nil || !goesOn || l.connection.IsOver() {
			return false
		}
		time.Sleep(successorPause)
	}
	return false
}

// start starts the program of the dead process with its command line. It returns an error if that ends
// without a guard, and errToldToEnd after a signal.
func (l *leaving) start() error {
	guarded, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = guarded.Close() }()
	process := exec.Command("/proc/self/exe", l.command[1:]...)
	process.Args[0], process.Stderr = l.command[0], os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var fds []int
	for _, file := range append(append([]*os.File{l.estate, l.journal}, l.connection.Files()...), end) {
		if file == nil {
			fds = append(fds, -1)
			continue
		}
		fds = append(fds, 3+len(process.ExtraFiles))
		process.ExtraFiles = append(process.ExtraFiles, file)
	}
	process.Env = append(environment(), handedOver(fds))
	err = process.Start()
	if err = errors.Join(err, end.Close()); err != nil {
		return err
	}
	if err := awaitReady(guarded); err != nil {
		err = errors.Join(err, process.Wait())
		var exit *exec.ExitError
		if errors.As(err, &exit) && slices.Contains(endSignals, os.Signal(exit.Sys().(syscall.WaitStatus).Signal())) {
			return errors.Join(errToldToEnd, err) // before the process could report it
		}
		return err
	}
	return nil
}

// environment returns this process's environment without its own handover.
func environment() []string {
	var own []string
	for _, variable := range os.Environ() {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case handoverVariable, ledVariable, toldToEndVariable:
		default:
			own = append(own, variable)
		}
	}
	return own
}
