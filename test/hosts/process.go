package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is a program on a host. Signals go directly to the program.
type Process struct {
	host   *Host
	cmd    *exec.Cmd
	output *output
	ended  chan struct{} // closed when it has ended and been waited for
	err    error         // its result; valid once ended is closed
}

// Start starts a program on the host with the test's environment. It is ended at the end of the test.
func (h *Host) Start(name string, args ...string) *Process {
	h.net.t.Helper()
	p, err := h.start(name, args)
	h.fatal("start "+name, err)
	h.net.keepLog(p)
	return p
}

// Run runs a program on the host and returns its standard output. The error has its result and standard
// error. After a timeout the program is killed, which is an error.
func (h *Host) Run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return h.RunContext(ctx, name, args...)
}

// RunContext is Run until the end of ctx.
func (h *Host) RunContext(ctx context.Context, name string, args ...string) (string, error) {
	p, err := h.start(name, args)
	if err != nil {
		return "", err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		// It may be inside an uninterruptible call, so do not wait for it.
		_ = p.cmd.Process.Kill()
		return p.Stdout(), fmt.Errorf("%s: %w; so far it wrote:\n%s", p, ctx.Err(), tail(p.Log()))
	}
	p.output.awaitEnd()
	h.net.forget(p)
	if p.err != nil {
		return p.Stdout(), fmt.Errorf("%s: %w; it wrote:\n%s", p, p.err, tail(p.Log()))
	}
	return p.Stdout(), nil
}

// MustRun is Run for a program that must succeed.
func (h *Host) MustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	stdout, err := h.Run(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

func (h *Host) start(name string, args []string) (*Process, error) {
	stdoutRead, stdoutWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdoutWrite.Close()
	stderrRead, stderrWrite, err := os.Pipe()
	if err != nil {
		stdoutRead.Close()
		return nil, err
	}
	defer stderrWrite.Close()

	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = stdoutWrite, stderrWrite
	// A separate group: signals of the test's terminal do not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := h.thread.do(cmd.Start); err != nil {
		stdoutRead.Close()
		stderrRead.Close()
		return nil, err
	}
	p := &Process{host: h, cmd: cmd, output: newOutput(), ended: make(chan struct{})}
	p.output.read(stdoutRead, true)
	p.output.read(stderrRead, false)
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	h.net.track(p)
	return p, nil
}

// String returns host, pid and command line for messages.
func (p *Process) String() string {
	return fmt.Sprintf("[%s %d] %s", p.host.name, p.Pid(), strings.Join(p.cmd.Args, " "))
}

// Host returns the host of the process.
func (p *Process) Host() *Host { return p.host }

// Pid returns the pid in the namespace of the test process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal, unless the process has ended.
func (p *Process) Signal(signal syscall.Signal) {
	p.host.net.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.host.net.t.Fatalf("hosts: %s: send %v: %v", p, signal, err)
	}
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	p.host.net.t.Helper()
	p.Signal(unix.SIGKILL)
	if err := p.waitEnd(); err != nil {
		p.host.net.t.Fatalf("hosts: killed: %v", err)
	}
}

// Stop sends SIGTERM and returns the result: nil for exit status 0.
func (p *Process) Stop() error {
	p.host.net.t.Helper()
	p.Signal(unix.SIGTERM)
	return p.Wait()
}

// Wait waits for the end and returns the result: nil for exit status 0.
func (p *Process) Wait() error {
	if err := p.waitEnd(); err != nil {
		return err
	}
	p.output.awaitEnd()
	return p.err
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

func (p *Process) waitEnd() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(Patience):
		return fmt.Errorf("%s has not ended; it wrote:\n%s%s", p, tail(p.Log()), p.host.stuck())
	}
}

// Freeze sends SIGSTOP and returns when the process has stopped or ended. It repeats the signal, because an
// exec may lose it. A thread of a daemon may wait in the kernel for the daemon itself, and stops after that.
func (p *Process) Freeze() {
	p.host.net.t.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	p.Signal(unix.SIGSTOP)
	p.awaitStopped(again.C)
}

// Thaw continues a frozen process.
func (p *Process) Thaw() {
	p.host.net.t.Helper()
	p.Signal(unix.SIGCONT)
}

// awaitStopped waits until the kernel reports that the process has stopped or ended, without reaping it. At
// each tick it repeats the signal.
func (p *Process) awaitStopped(again <-chan time.Time) {
	p.host.net.t.Helper()
	reported := make(chan error, 1)
	go func() {
		for {
			err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				reported <- err
				return
			}
		}
	}()
	patience := time.After(Patience)
	for {
		select {
		case err := <-reported:
			if err != nil && !errors.Is(err, unix.ECHILD) {
				p.host.net.t.Fatalf("hosts: %s: wait until it stops: %v", p, err)
			}
			return
		case <-again:
			if isStopped(p.Pid()) {
				return
			}
			p.Signal(unix.SIGSTOP)
		case <-patience:
			p.host.net.t.Fatalf("hosts: %s does not stop%s", p, p.host.stuck())
		}
	}
}

// Log returns the output so far, of both streams.
func (p *Process) Log() string {
	text, _ := p.output.text()
	return text
}

// Stdout returns the standard output so far.
func (p *Process) Stdout() string { return p.output.stdoutText() }

// WaitOutput waits for a text in the output. The error means that the process has ended without it.
func (p *Process) WaitOutput(text string) error {
	patience := time.After(Patience)
	ended := p.ended
	for {
		log, changed := p.output.text()
		if strings.Contains(log, text) {
			return nil
		}
		select {
		case <-changed:
		case <-ended:
			// Its last output may still be on its way.
			ended = nil
			p.output.awaitEnd()
			if log = p.Log(); !strings.Contains(log, text) {
				return fmt.Errorf("%s and did not write %q; it wrote:\n%s", p.state(), text, tail(log))
			}
		case <-patience:
			return fmt.Errorf("%s does not write %q; it wrote:\n%s", p, text, tail(log))
		}
	}
}

// state describes whether and how the process has ended.
func (p *Process) state() string {
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Sprintf("%s ended: %v", p, p.err)
		}
		return fmt.Sprintf("%s ended well", p)
	default:
		return fmt.Sprintf("%s still runs", p)
	}
}
