package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience limits the start of a daemon.
const patience = time.Minute

// daemons are programs with files in a directory. They run until the comparison ends.
type daemons struct {
	dir  string
	fail context.CancelCauseFunc // called when a daemon ends early
}

type daemon struct {
	process  *os.Process
	stopping atomic.Bool
	ended    chan error
}

// start starts a program on the host of that name and waits for a text in its output.
func (d *daemons) start(host, ready string, args ...string) (*daemon, error) {
	cmd := exec.Command("sh", append([]string{"-c", `hostname "$0" && exec "$@"`, host}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS, Pdeathsig: unix.SIGKILL}
	printed := &watched{want: ready, found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	started := &daemon{process: cmd.Process, ended: make(chan error, 1)}
	go func() {
		_ = cmd.Wait() // state has the result
		err := fmt.Errorf("%s on %s ended: %v; it said\n%s", filepath.Base(args[0]), host, cmd.ProcessState, printed.tail())
		if !started.stopping.Load() {
			d.fail(err)
		}
		started.ended <- err
	}()
	select {
	case <-printed.found:
		return started, nil
	case err := <-started.ended:
		return nil, err
	case <-time.After(patience):
		return nil, fmt.Errorf("%s on %s is not ready after %v; it said\n%s", filepath.Base(args[0]), host, patience, printed.tail())
	}
}

// stop stops a program and waits for its end.
func (d *daemon) stop() error {
	d.stopping.Store(true)
	if err := d.process.Signal(unix.SIGTERM); err != nil {
		return err
	}
	select {
	case <-d.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("process %d does not end", d.process.Pid)
	}
}

// watched keeps the last output of a program and reports a text in it.
type watched struct {
	want  string
	found chan struct{}

	mu   sync.Mutex
	text []byte
	seen bool
}

const kept = 16 << 10

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if !w.seen && bytes.Contains(w.text, []byte(w.want)) {
		w.seen = true
		close(w.found)
	}
	if len(w.text) > 2*kept {
		w.text = w.text[len(w.text)-kept:]
	}
	return len(p), nil
}

func (w *watched) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text[max(0, len(w.text)-kept):])
}

// output runs a program and returns its output without the final newline. On a timeout it sends SIGQUIT, so
// that Go programs print their stacks.
func output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(args, " "), err, stdout, stderr.Bytes())
	}
	return strings.TrimRight(string(stdout), "\n"), nil
}

// firstLine returns the first line of a program's output.
func firstLine(ctx context.Context, args ...string) (string, error) {
	text, err := output(ctx, args...)
	line, _, _ := strings.Cut(text, "\n")
	return line, err
}

// folder creates a directory for a daemon.
func (d *daemons) folder(name string) (string, error) {
	path := filepath.Join(d.dir, name)
	return path, os.MkdirAll(path, 0o755)
}
