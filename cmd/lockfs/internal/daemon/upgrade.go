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
	"lockfs/cmd/lockfs/internal/daemon/supervisor"
	"lockfs/fusefs"
	"lockfs/raftstore/storepb"
)

const (
	// handoverLimit is how long requests under way may take before an upgrade is put off. Others wait meanwhile.
	handoverLimit = 5 * time.Second
	// checkLimit is how long the new program may take to say whether it fits, and the cluster to answer, and others to lead in place of this
	// server, which nobody waits for.
	checkLimit = 10 * time.Second

	// stopLimit is how long the other parts of the daemon may take to stop, while programs wait (parts.stopSoon). What they leave undone is as
	// after a crash.
	stopLimit = 300 * time.Millisecond

	takesOver  = "takes-over"
	runsAtFlag = "runs-at"
)

// upgrade has the newest program at this one's path go on with a mount, in this very process: it is found under the same pid, and
// the files of programs stay open. What is left of the program that runs now is its session file, and the connection to the kernel.
type upgrade struct {
	program string
	mounted *fusefs.Mounted
	client  *session.Client
	node    *cluster.Node // nil: none, or it is not ready
	guard   *guardKeeper
	others  parts // all else that the daemon does
	logger  *slog.Logger
}

// hangups are the signals that ask for an upgrade. Where there is a terminal they say that it is gone, which ends the program.
func hangups() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	if terminal, err := os.Open("/dev/tty"); err == nil {
		_ = terminal.Close()
		return asked
	}
	signal.Notify(asked, unix.SIGHUP)
	return asked
}

// await upgrades whenever that is asked for, until the daemon is to end (true) or the mount is gone (false).
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

// gone is closed once the mount is.
func (u *upgrade) gone() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		u.mounted.Wait()
		close(gone)
	}()
	return gone
}

// attempt returns only if there is no upgrade, and answers whether the mount is over.
func (u *upgrade) attempt(ctx context.Context) (over bool) {
	over, err := u.run(ctx)
	u.logger.Error("no new program goes on with the mount", "program", u.program, "error", err)
	return over
}

// run returns only if there is no upgrade, with the reason, and whether the mount is over. Else it is served as before.
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
	supervisor.Reloading()
	u.others.stopSoon(stopLimit, u.logger)
	u.logger.Info("the mount is handed over", "program", u.program, "state", len(handover.State), "after", time.Since(began))
	variable, err := bequeath(handover.State, sessionFile, handover.Files, u.guard)
	if err == nil {
		err = execute(ctx, told, u.program, append(variables, variable))
	}
	u.guard.end()
	return true, errors.Join(err, u.mounted.End(u.client.Answers()))
}

// bequeath answers the variable for the next program in this process, with descriptors that stay open until then. The guard, if there is
// one, watches on.
func bequeath(state []byte, session *os.File, connection []*os.File, guards *guardKeeper) (variable string, err error) {
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
		guards.end() // if it has not just ended, it would take what follows for the end of this process
	}
	return handedOver(fds), nil
}

// keepOpen answers other numbers of files, that nothing in this process closes any more; -1 of none.
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

// execute puts a program in the place of this one, or this one anew if that cannot be done. If ctx has ended, or told has come, the next
// one is to end once it has taken over. What comes later kills, whichever of the two programs is there.
func execute(ctx context.Context, told chan os.Signal, program string, handed []string) (err error) {
	signal.Ignore(unix.SIGHUP) // it would end the next one before that knows what to do
	for _, s := range endSignals {
		caught, failed := act(s, new(signalAction))
		defer func() { _, _ = act(s, caught) }() // if this program goes on
		err = errors.Join(err, failed)
	}
	settle()
	signal.Stop(told) // once it has what this process was sent until now
	variables := append(environment(), handed...)
	if ctx.Err() != nil || len(told) > 0 {
		variables = append(variables, toldToEndVariable+"=1")
	}
	for _, path := range []string{program, "/proc/self/exe"} {
		err = errors.Join(err, fmt.Errorf("%s: %w", path, syscall.Exec(path, os.Args, variables)))
	}
	return err
}

// settle waits until no thread has yet to begin to handle what it was sent before. A thread that has taken a signal takes no other until it
// has handled that, so each is sent one that Go's runtime takes for nothing. One that waits in the kernel for a disk takes none.
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

// signalAction is the kernel's struct sigaction, which is shorter. The zero one is what a signal does by default, which is to kill.
type signalAction [8]uint64

// act sets what a signal does, and answers what it did before. [signal.Reset] does too, but forgets signals that came and were not read yet.
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

// check finds out what can be known before anything is stopped.
func (u *upgrade) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	if u.node != nil {
		if err := u.node.CanStart(); err != nil {
			return fmt.Errorf("this server could not be started: %w", err)
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
		return fmt.Errorf("%s does not go on with the mount: %w: %s", u.program, err, bytes.TrimSpace(output))
	}
	return u.askCluster(ctx)
}

// resign has another server lead in place of this one, while the mount is served yet, and answers what the next program has to know when it
// is a server itself.
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
