package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
)

// logFile is the log of a daemon in the background.
const logFile = "/var/log/lockfs.log"

// background is a daemon without a supervisor, on hosts without systemd.
type background struct {
	program string
	command []string        // arguments of the program
	more    func() []string // additional environment variables
	socket  string          // socket of the daemon
	mount   string

	process *os.File  // pidfd of a process that another process started, or nil
	number  int       // its pid
	child   *exec.Cmd // started by this process
	ended   chan struct{}
	logEnd  int64 // size of logFile at the start
}

func (b *background) install() (bool, error) { return false, nil }

func (b *background) remove() error { return nil }

func (b *background) start(ctx context.Context) error {
	if running, err := b.running(ctx); err != nil || running {
		return err
	}
	// On some systems the group of the system log can write to /var/log.
	log, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o640)
	if errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("log of the daemon: %s is a symbolic link: remove it", logFile)
	}
	if err != nil {
		return fmt.Errorf("log of the daemon: %w", err)
	}
	defer func() { _ = log.Close() }()
	if b.logEnd, err = log.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	b.child = exec.Command(b.program, b.command...)
	b.child.Stdout, b.child.Stderr = log, log
	b.child.Dir = "/"
	b.child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	own := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "LOCKFS_") && !strings.HasPrefix(v, cli.SocketDirVariable+"=")
	})
	b.child.Env = append(append(own, cli.UnattendedVariable+"=1"), b.more()...)
	if err := b.child.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	b.ended = make(chan struct{})
	go func() {
		_ = b.child.Wait()
		close(b.ended)
	}()
	return nil
}

func (b *background) running(ctx context.Context) (bool, error) {
	if b.child != nil {
		select {
		case <-b.ended:
			return false, nil
		default:
			return true, nil
		}
	}
	return b.find(ctx)
}

func (b *background) pid(ctx context.Context) (int, error) {
	if b.child != nil {
		return b.child.Process.Pid, nil
	}
	if there, err := b.find(ctx); err != nil || !there {
		return 0, err
	}
	return b.number, nil
}

func (b *background) reload(ctx context.Context) error {
	there, err := b.find(ctx)
	if err != nil || !there {
		return err
	}
	return ignoreGone(unix.PidfdSendSignal(int(b.process.Fd()), unix.SIGHUP, nil, 0))
}

// find finds a daemon started by another process, and keeps it: it may run for a while after its socket is
// gone. During an upgrade or a restart the socket has no listener, but the mount has a guard; find then waits
// for the daemon.
func (b *background) find(ctx context.Context) (there bool, err error) {
	if b.process != nil && !hasExited(b.process) {
		return true, nil
	}
	b.forget()
	ctx, cancel := context.WithTimeout(ctx, upgradeLimit)
	defer cancel()
	for {
		guarded := isGuarded(b.mount) // first: the next process listens before it replaces this guard
		if there, err := b.look(); err != nil || there || !guarded {
			return there, err
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return false, fmt.Errorf("no daemon listens at %s, but %s has a guard that waits for the next process; %s may show the cause",
				b.socket, b.mount, logFile)
		}
	}
}

// look is one attempt of find.
func (b *background) look() (there bool, err error) {
	pid, err := listener(b.socket)
	if err != nil || pid == 0 {
		return false, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, os.NewSyscallError("pidfd_open", err)
	}
	// Another process may have got the number just before it was opened.
	if again, err := listener(b.socket); err != nil || again != pid {
		_ = unix.Close(process)
		return false, err
	}
	b.process, b.number = os.NewFile(uintptr(process), "daemon"), pid
	return true, nil
}

// stop ends the daemon twice. A process that has just taken over does not know yet that it has to end, and
// before Linux 6.15 its guard then starts another one.
func (b *background) stop(ctx context.Context, force bool) error {
	for range 2 {
		if there, err := b.find(ctx); err != nil || !there {
			return err
		}
		if err := b.end(ctx, force); err != nil {
			return err
		}
	}
	return nil
}

// end ends the process of find.
func (b *background) end(ctx context.Context, force bool) error {
	process := int(b.process.Fd())
	defer b.forget()
	if err := unix.PidfdSendSignal(process, unix.SIGTERM, nil, 0); err != nil {
		return ignoreGone(err)
	}
	ended, err := awaitExit(ctx, process, stopTime)
	if err != nil || ended {
		return err
	}
	if !force {
		return errors.New("the daemon does not stop: kill it with --force")
	}
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil {
		return ignoreGone(err)
	}
	_, err = awaitExit(ctx, process, stopTime)
	return err
}

func (b *background) forget() {
	if b.process != nil {
		_ = b.process.Close()
		b.process = nil
	}
}

func hasExited(pidfd *os.File) bool {
	ready := []unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0
}

func ignoreGone(err error) error {
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return os.NewSyscallError("pidfd_send_signal", err)
}

// awaitExit waits until a pidfd is readable, because its process has ended.
func awaitExit(ctx context.Context, process int, limit time.Duration) (ended bool, err error) {
	const look = 100 * time.Millisecond // how soon it notices the end of ctx
	for end := time.Now().Add(limit); time.Now().Before(end); {
		ready := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(look.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, os.NewSyscallError("poll", err)
		case n > 0:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
	}
	return false, nil
}

// listener returns the listener on a socket, or 0.
func listener(socket string) (pid int, err error) {
	conn, err := net.Dial("unix", socket)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for the daemon: %w", err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, os.NewSyscallError("getsockopt", err)
	}
	if peer.Pid == 0 {
		return 0, fmt.Errorf("the daemon at %s runs in another PID namespace: stop it there", socket)
	}
	return int(peer.Pid), nil
}

func (b *background) String() string {
	pid := b.number
	if b.child != nil {
		pid = b.child.Process.Pid
	}
	return fmt.Sprintf("process %d in the background, because systemd does not run here; it logs to %s", pid, logFile)
}

func (b *background) trouble(context.Context) string {
	const most = 2 << 10
	log, err := os.Open(logFile)
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	text, _ := io.ReadAll(io.NewSectionReader(log, b.logEnd, 1<<20))
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
