package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockfs/cluster"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/daemon/sdnotify"
	"lockfs/fusefs"
	"lockfs/raftstore/storepb"
)

const (
	// handoverLimit is how long an upgrade waits for current requests before it is postponed. New requests
	// wait meanwhile.
	handoverLimit = 5 * time.Second
	// checkLimit is the time limit for the check of the new program, for the cluster's reply, and for the
	// transfer of leadership. Programs do not wait for these.
	checkLimit = 10 * time.Second

	// stopLimit is the time limit for stopping the other parts while programs wait (parts.stopSoon). The rest
	// is as after a crash.
	stopLimit = 300 * time.Millisecond

	takesOver  = "takes-over"
	runsAtFlag = "runs-at"
)

// upgrade replaces the program of this process by the newest one at the same path, with its mount. The PID
// and open files stay. The new program gets the session file and the connection to the kernel.
type upgrade struct {
	program string
	mounted *fusefs.Mounted
	client  *session.Client
	node    *cluster.Node // nil without a ready node
	guard   *guardClient
	others  parts // all other parts of the daemon
	logger  *slog.Logger
}

// hangups returns the signals for an upgrade. On a terminal they mean its end, and end the program.
func hangups() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	if terminal, err := os.Open("/dev/tty"); err == nil {
		_ = terminal.Close()
		return asked
	}
	signal.Notify(asked, unix.SIGHUP)
	return asked
}

// await upgrades on each request, until the daemon has to end (true) or the mount is gone (false).
func (u *upgrade) await(ctx context.Context, asked <-chan os.Signal, gone <-chan struct{}) bool {
	for {
		select {
		case <-asked:
			if u.attempt(ctx) {
				return false
			}
		case <-ctx.Done():
			return true
		case <-gone:
			return false
		}
	}
}

// gone is closed at the end of the mount.
func (u *upgrade) gone() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		u.mounted.Wait()
		close(gone)
	}()
	return gone
}

// attempt returns only without an upgrade, and reports whether the mount is over.
func (u *upgrade) attempt(ctx context.Context) (over bool) {
	over, err := u.run(ctx)
	u.logger.Error("no new program took over the mount", "program", u.program, "error", err)
	return over
}

// run returns only without an upgrade, with the reason, and reports whether the mount is over. Otherwise the
// mount works as before.
func (u *upgrade) run(ctx context.Context) (over bool, err error) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, endSignals...)
	defer signal.Stop(told)
	if err := u.check(ctx); err != nil {
		return false, err
	}
	variables, stay, err := u.resign(ctx)
	defer func() {
		if err != nil && !over {
			stay()
		}
	}()
	if err != nil {
		return false, err
	}
	began := time.Now()
	handover, err := u.mounted.HandOver(handoverLimit)
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	sessionFile, err := u.client.HandOver(limited)
	if err != nil {
		handover.Resume()
		return false, err
	}
	sdnotify.Reloading()
	u.others.stopSoon(stopLimit, u.logger)
	u.logger.Info("the mount is handed over", "program", u.program, "state", len(handover.State), "after", time.Since(began))
	variable, err := exportState(handover.State, sessionFile, handover.Files, u.guard)
	if err == nil {
		err = execute(ctx, told, u.program, append(variables, variable))
	}
	u.guard.end()
	return true, errors.Join(err, u.mounted.End(u.client.Answers()))
}

// exportState returns the value of handoverVariable for the next program in this process. Its file
// descriptors stay open. A guard keeps watching.
func exportState(state []byte, session *os.File, connection []*os.File, guards *guardClient) (variable string, err error) {
	fd, err := unix.MemfdCreate("lockfs-mount", unix.MFD_CLOEXEC)
	if err != nil {
		return "", os.NewSyscallError("memfd_create", err)
	}
	memory := os.NewFile(uintptr(fd), "state")
	if _, err := memory.Write(state); err != nil {
		return "", err
	}
	fds, err := keepOpen(append([]*os.File{memory, session}, connection...)...)
	if err != nil {
		return "", err
	}
	if guard := guards.stay(); guard != nil {
		if more, err := keepOpen(guard.end, guards.token, guard.socket); err == nil {
			return fmt.Sprintf("%s;%d", handedOver(append(fds, more...)), guard.Process.Pid), nil
		}
		guards.end() // it would take the upgrade for the end of this process, unless it has just ended
	}
	return handedOver(fds), nil
}

// keepOpen duplicates files, for descriptors which this process never closes; -1 for missing ones.
func keepOpen(files ...*os.File) (fds []int, err error) {
	for _, file := range files {
		fd := -1
		if file != nil {
			if fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD, 3); err != nil {
				for _, fd := range fds {
					_ = unix.Close(fd)
				}
				return nil, os.NewSyscallError("fcntl", err)
			}
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// execute executes a program in this process, or this program again after an error. If ctx has ended or a
// signal is in told, the next program ends after the takeover. Later signals kill whichever program runs.
func execute(ctx context.Context, told chan os.Signal, program string, handed []string) (err error) {
	signal.Ignore(unix.SIGHUP) // it would end the next program before that handles it
	for _, s := range endSignals {
		caught, failed := act(s, new(signalAction))
		defer func() { _, _ = act(s, caught) }() // if this program continues
		err = errors.Join(err, failed)
	}
	settle()
	signal.Stop(told) // after all signals so far
	variables := append(environment(), handed...)
	if ctx.Err() != nil || len(told) > 0 {
		variables = append(variables, toldToEndVariable+"=1")
	}
	for _, path := range []string{program, "/proc/self/exe"} {
		err = errors.Join(err, fmt.Errorf("%s: %w", path, syscall.Exec(path, os.Args, variables)))
	}
	return err
}

// settle waits until each thread has handled its earlier signals. A thread handles one signal at a time, so
// settle sends each one a signal which Go's runtime ignores. A thread waiting for a disk takes none.
func settle() {
	const taken = "\nSigPnd:\t0000000000000000\n" // proc_pid_status(5)
	deadline := time.Now().Add(stopLimit)
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Tgkill(os.Getpid(), id, unix.SIGURG)
		}
	}
	for _, thread := range threads {
		for time.Now().Before(deadline) {
			status, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/status")
			if err != nil || bytes.Contains(status, []byte(taken)) {
				break
			}
		}
	}
}

// signalAction is the kernel's struct sigaction, which is shorter. The zero value is the default action,
// which kills.
type signalAction [8]uint64

// act sets the action of a signal, and returns the earlier one. [signal.Reset] does too, but drops unread
// signals.
func act(s os.Signal, to *signalAction) (before *signalAction, err error) {
	before = new(signalAction)
	const maskBytes = 8
	_, _, errno := unix.Syscall6(
		unix.SYS_RT_SIGACTION, uintptr(s.(unix.Signal)), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)), maskBytes, 0, 0)
	if errno != 0 {
		return before, os.NewSyscallError("rt_sigaction", errno)
	}
	return before, nil
}

// check finds errors before anything is stopped.
func (u *upgrade) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	if u.node != nil {
		if err := u.node.CanStart(); err != nil {
			return fmt.Errorf("this server would not start: %w", err)
		}
	}
	offer, err := u.mounted.Offer()
	if err != nil {
		return err
	}
	runsAt := fmt.Sprintf("--%s=%d", runsAtFlag, u.client.RunsAt())
	asked := exec.CommandContext(ctx, u.program, slices.Concat([]string{takesOver, runsAt, "--"}, os.Args)...)
	asked.Stdin = bytes.NewReader(offer)
	if output, err := asked.CombinedOutput(); err != nil {
		return fmt.Errorf("%s cannot take over the mount: %w: %s", u.program, err, bytes.TrimSpace(output))
	}
	return u.askCluster(ctx)
}

// resign transfers leadership to another server while the mount works, and returns the variables for the next
// program of a server.
func (u *upgrade) resign(ctx context.Context) (variables []string, stay func(), err error) {
	if u.node == nil {
		return nil, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	led, err := u.node.TransferLeadership(ctx)
	if err == nil {
		err = u.askCluster(ctx) // the next leader may not be ready yet
	}
	return []string{fmt.Sprintf("%s=%d", ledVariable, led)}, func() { u.node.ResumeLeadership(led) }, err
}

func (u *upgrade) askCluster(ctx context.Context) error {
	if _, err := u.client.Query(ctx, &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}}); err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	return nil
}
