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
	"lockfs/fusefs/estate"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/hostinfo"
)

const (
	// crashInterval is in which a mount ends whose processes have ended unasked again and again.
	crashInterval = 30 * time.Second
	// successorPause is between two attempts to start one that goes on.
	successorPause = time.Second
	// mostFailures is how many attempts there are.
	mostFailures = 10
)

// isUnattended tells that nobody else starts the daemon anew.
func isUnattended() bool { return os.Getenv(cli.UnattendedVariable) != "" }

// isSupervised tells that systemd does, or another supervisor.
func isSupervised() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv(cli.SupervisedVariable) != ""
}

// leaving is what a guard has of a mount whose process has ended, for another one to go on with.
type leaving struct {
	command    []string // by which that was started
	connection *mountpoint.Connection
	journal    *os.File // nil: there is none
	estate     *os.File
	socket     *os.File // where the next process asks for all that; nil: nowhere
	told       bool     // whoever had the mount was told to end, and could not unmount
}

// succeed starts processes until one goes on with the mount under a guard of its own; false: none does. Programs wait meanwhile.
func (l *leaving) succeed() bool {
	for range mostFailures {
		err := l.start()
		if err == nil {
			return true
		}
		if l.told = errors.Is(err, errToldToEnd); l.told {
			return false
		}
		if goesOn, err := estate.MayGoOn(l.estate, hostinfo.BootTime(), crashInterval); err != nil || !goesOn || l.connection.IsOver() {
			return false
		}
		time.Sleep(successorPause)
	}
	return false
}

// start starts the very program that has ended, by the same command. The error says that it has ended without another guard, and is
// errToldToEnd if somebody has told it to.
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
	if err := hear(guarded); err != nil {
		err = errors.Join(err, process.Wait())
		var exit *exec.ExitError
		if errors.As(err, &exit) && slices.Contains(endSignals, os.Signal(exit.Sys().(syscall.WaitStatus).Signal())) {
			return errors.Join(errToldToEnd, err) // before it could say so
		}
		return err
	}
	return nil
}

// environment is this process's, without what it was handed over itself.
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
